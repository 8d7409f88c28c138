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
import { streamTroubles } from './trouble-stream.js';

/** A guard as `@UseGuards` takes it: a class or an object. */
export type InspectorGuard = Type<CanActivate> | CanActivate;

interface InspectorRequest {
  readonly headers: IncomingHttpHeaders;
  readonly query: Partial<Record<string, unknown>>;
  readonly body: unknown;
  readonly ip?: string;
}

/** Response of Node on Express, or an object that contains the response of Node on Fastify. */
type Reply = ServerResponse | FastifyReply;

interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): void;
}

const COMMON_HEADERS = {
  'Cache-Control': 'no-store, no-transform',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/**
 * Policy that allows only the page's own script and style, blocks other origins, and forbids `innerHTML` and the like.
 */
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

/** Creates the controller. It writes its answers itself, because interceptors may wrap returned values. */
export function createInspectorController(
  path: string,
  guards: readonly InspectorGuard[],
  who?: (request: object) => string,
): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards)
  // Does the same as `@ApiExcludeController()` of @nestjs/swagger, which need not be installed.
  @SetMetadata('swagger/apiExcludeController', [true])
  class LockInspectorController {
    constructor(
      @Inject(LockInspector) private readonly inspector: LockInspector,
      private readonly adapterHost: HttpAdapterHost,
    ) {}

    @Get()
    page(@Res() reply: Reply): void {
      this.#sendAnswer(reply, 'text/html; charset=utf-8', PAGE, { 'Content-Security-Policy': CONTENT_SECURITY_POLICY });
    }

    @Get('state')
    async state(@Req() { query }: InspectorRequest, @Res() reply: Reply): Promise<void> {
      const { search = '' } = query;
      if (typeof search !== 'string') throw new BadRequestException('search is a text');
      this.#sendJson(reply, await this.inspector.readState(search));
    }

    @Get('events')
    events(@Res() reply: Reply): void {
      const response = takeNodeResponse(reply);
      if (this.inspector.isShuttingDown) return refuseStream(response);
      response.writeHead(200, { ...COMMON_HEADERS, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
      streamTroubles(this.inspector, response);
    }

    @Post('evict')
    async evict(@Req() request: InspectorRequest, @Res() reply: Reply): Promise<void> {
      const { headers, body, ip = 'an unknown address' } = request;
      assertSameOrigin(headers);
      const { backend, key, owner } = parseEviction(body);
      if (!this.inspector.hasBackend(backend)) throw new NotFoundException(`There is no backend ${backend}`);
      const holder = await this.inspector
        .evictOwner(backend, key, owner, `${who?.(request) ?? 'somebody'} at ${ip}`)
        .catch((error: unknown) => {
          throw isLockError(error) ? new ServiceUnavailableException(error.message) : error;
        });
      if (!holder) throw new ConflictException('That holder has the key no more');
      this.#sendJson(reply, { evicted: true });
    }

    #sendJson(reply: Reply, value: unknown): void {
      this.#sendAnswer(reply, 'application/json; charset=utf-8', JSON.stringify(value));
    }

    /** @param type the media type of `body` */
    #sendAnswer(reply: Reply, type: string, body: string, extraHeaders: Record<string, string> = {}): void {
      const { httpAdapter } = this.adapterHost;
      const headers = { ...COMMON_HEADERS, 'Content-Type': type, ...extraHeaders };
      for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(reply, name, value);
      httpAdapter.reply(reply, body, 200);
    }
  }
  return LockInspectorController;
}

/** Returns the response of Node, and keeps Fastify from answering the request. */
function takeNodeResponse(reply: Reply): ServerResponse {
  if (!('hijack' in reply)) return reply;
  reply.hijack();
  return reply.raw;
}

/**
 * Answers with 204, after which a browser does not reconnect by itself. Closes the connection, because an open
 * connection delays the shutdown.
 */
function refuseStream(response: ServerResponse): void {
  response.shouldKeepAlive = false;
  response.writeHead(204, COMMON_HEADERS).end();
}

/** @throws BadRequestException */
function parseEviction(body: unknown): { readonly backend: string; readonly key: string; readonly owner: string } {
  const fields: Partial<Record<string, unknown>> = typeof body === 'object' && body !== null ? { ...body } : {};
  const { backend, key, owner } = fields;
  if (typeof backend === 'string' && typeof key === 'string' && typeof owner === 'string')
    return { backend, key, owner };
  throw new BadRequestException('backend, key and owner are texts');
}
