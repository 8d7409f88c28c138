import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import {
  BadRequestException,
  ConflictException,
  Controller,
  Get,
  Inject,
  NotFoundException,
  Post,
  Req,
  Res,
  ServiceUnavailableException,
  SetMetadata,
  type CanActivate,
  type Type,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { isLockError } from '../core/index.js';
import { PAGE, SCRIPT_HASH, STYLE_HASH } from './bundled-page.js';
import { LockInspector } from './lock-inspector.js';
import { assertSameOrigin } from './same-origin.js';

/** As for `@UseGuards`. */
export type InspectorGuard = Type<CanActivate> | CanActivate;

interface InspectorRequest {
  readonly headers: IncomingHttpHeaders;
  readonly query: Partial<Record<string, unknown>>;
  readonly body: unknown;
  readonly ip?: string;
}

/** Express has the response of Node itself, and Fastify has it inside. */
type Reply = ServerResponse | FastifyReply;

interface FastifyReply {
  readonly raw: ServerResponse;
  /** The answer is written without Fastify. */
  hijack(): void;
}

const HEADERS = {
  'Cache-Control': 'no-store, no-transform',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** The script and style of the page, nothing from elsewhere, and no way to make markup of a text. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "connect-src 'self'",
  'img-src data:',
  `script-src '${SCRIPT_HASH}'`,
  `style-src '${STYLE_HASH}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** A client that reads nothing for so long is cut off. It comes back by itself. */
const MOST_UNREAD_BYTES = 1_000_000;

/** The routes below `path`. Answers go past interceptors of the application, which may wrap them. */
export function inspectorController(
  path: string,
  guards: readonly InspectorGuard[],
  who?: (request: object) => string,
): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards)
  // As `@ApiExcludeController()` of @nestjs/swagger.
  @SetMetadata('swagger/apiExcludeController', [true])
  class LockInspectorController {
    constructor(
      @Inject(LockInspector) private readonly inspector: LockInspector,
      private readonly host: HttpAdapterHost,
    ) {}

    @Get()
    page(@Res() reply: Reply): void {
      this.#answer(reply, 'text/html; charset=utf-8', PAGE, { 'Content-Security-Policy': CONTENT_SECURITY_POLICY });
    }

    @Get('state')
    async state(@Req() { query }: InspectorRequest, @Res() reply: Reply): Promise<void> {
      const { search = '' } = query;
      if (typeof search !== 'string') throw new BadRequestException('search is a text');
      this.#json(reply, await this.inspector.read(search));
    }

    @Get('events')
    events(@Res() reply: Reply): void {
      const response = rawOf(reply);
      response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
      response.write('retry: 2000\n\n');
      const end = (): void => void response.end();
      const stop = this.inspector.follow((trouble) => {
        if (response.writableLength > MOST_UNREAD_BYTES) response.destroy();
        else response.write(`data: ${JSON.stringify(trouble)}\n\n`);
      }, end);
      response.on('close', stop);
    }

    @Post('evict')
    async evict(@Req() request: InspectorRequest, @Res() reply: Reply): Promise<void> {
      const { headers, body, ip = 'an unknown address' } = request;
      assertSameOrigin(headers);
      const { backend, key, owner } = evictionOf(body);
      if (!this.inspector.has(backend)) throw new NotFoundException(`There is no backend ${backend}`);
      const holder = await this.inspector
        .evict(backend, key, owner, `${who?.(request) ?? 'somebody'} at ${ip}`)
        .catch((error: unknown) => {
          throw isLockError(error) ? new ServiceUnavailableException(error.message) : error;
        });
      if (!holder) throw new ConflictException('That holder has the key no more');
      this.#json(reply, { evicted: true });
    }

    #json(reply: Reply, value: unknown): void {
      this.#answer(reply, 'application/json; charset=utf-8', JSON.stringify(value));
    }

    #answer(reply: Reply, type: string, body: string, more: Record<string, string> = {}): void {
      const { httpAdapter } = this.host;
      const headers = { ...HEADERS, 'Content-Type': type, ...more };
      for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(reply, name, value);
      httpAdapter.reply(reply, body, 200);
    }
  }
  return LockInspectorController;
}

function rawOf(reply: Reply): ServerResponse {
  if (!('hijack' in reply)) return reply;
  reply.hijack();
  return reply.raw;
}

/** @throws BadRequestException */
function evictionOf(body: unknown): { readonly backend: string; readonly key: string; readonly owner: string } {
  const fields: Partial<Record<string, unknown>> = typeof body === 'object' && body !== null ? { ...body } : {};
  const { backend, key, owner } = fields;
  if (typeof backend === 'string' && typeof key === 'string' && typeof owner === 'string')
    return { backend, key, owner };
  throw new BadRequestException('backend, key and owner are texts');
}
