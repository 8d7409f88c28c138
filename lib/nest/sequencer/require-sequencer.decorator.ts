import {
  BadRequestException,
  type CanActivate,
  ConflictException,
  type ExecutionContext,
  Inject,
  Injectable,
  type OnModuleInit,
  UseGuards,
} from '@nestjs/common';
import { MetadataScanner } from '@nestjs/core';
import { LockConfigurationError, type LockService } from '../../core/index.js';
import { labelOf } from '../../decorators/declaration.js';
import { getLockServiceToken } from '../inject-lock-service.decorator.js';
import { isNonHttpHandler, isHttpHandler } from '../method-metadata.js';

export interface RequireSequencerOptions {
  /** The name of the backend that the locks are kept by. @default 'default' */
  readonly backend?: string;
  /** The key of the sequencer, without the namespace. @default any */
  readonly key?: (request: { readonly params: unknown; readonly query: unknown; readonly body: unknown }) => string;
}

interface HttpRequest {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** A token of HTTP: https://www.rfc-editor.org/rfc/rfc9110#name-tokens */
const HEADER = /^[!#$%&'*+.^_`|~\w-]+$/u;

/**
 * Lets only holders of a lock in: `@RequireSequencer('x-lock-sequencer')` on a controller or a handler, for requests
 * that carry `lock.sequencer()` in that header. 409 when the lock is no longer held; 400 without a sequencer, or for
 * one of another backend or key; 503 when the backend does not answer. It is checked once, before the handler: only the
 * fencing token protects later writes.
 * @throws LockConfigurationError when the header cannot have that name; at the start where there is no HTTP
 */
export function RequireSequencer(
  header: string,
  options: RequireSequencerOptions = {},
): ClassDecorator & MethodDecorator {
  if (typeof header !== 'string' || !HEADER.test(header)) {
    throw new LockConfigurationError(
      `header must be the name of one, as "x-lock-sequencer"; it was "${header}"`,
      'header',
    );
  }
  const name = header.toLowerCase();
  return (target: object, method?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const guards = UseGuards(guardClass(name, options, () => assertHttp(target, method)));
    if (typeof target === 'function') guards(target);
    else if (method !== undefined && descriptor) guards(target, method, descriptor);
  };
}

function guardClass(header: string, { backend, key }: RequireSequencerOptions, assertUsable: () => void) {
  @Injectable()
  class SequencerGuard implements CanActivate, OnModuleInit {
    constructor(@Inject(getLockServiceToken(backend)) private readonly locks: LockService) {}

    /** By then the other decorators of the handler have been called. */
    onModuleInit(): void {
      assertUsable();
    }

    async canActivate(context: ExecutionContext): Promise<boolean> {
      if (context.getType() !== 'http') throw withoutHttp(context.getHandler().name);
      const request = context.switchToHttp().getRequest<HttpRequest>();
      const shown = request.headers[header];
      // The key comes from the request, which may leave it out. It must not match any key then.
      const wanted: { key?: string } = key ? { key: key(request) } : {};
      const state = typeof shown === 'string' ? await this.locks.checkSequencer(shown, wanted) : 'unknown';
      if (state === 'stale') throw new ConflictException('The lock that this request was made under is no longer held');
      if (state === 'unknown')
        throw new BadRequestException(`The header ${header} must show the lock to make this request under`);
      return true;
    }
  }
  return SequencerGuard;
}

/** @throws LockConfigurationError when Nest never asks the guard, or asks it about something that has no headers */
function assertHttp(target: object, method: string | symbol | undefined): void {
  if (method === undefined) {
    const prototype: object = Reflect.get(target, 'prototype');
    const names = new MetadataScanner().getAllMethodNames(prototype);
    const foreign = names.find((name) => isNonHttpHandler(Reflect.get(prototype, name)));
    if (foreign !== undefined) throw withoutHttp(labelOf({ target: prototype, name: foreign }));
    return;
  }
  const handler: unknown = Reflect.get(target, method);
  const isHttp = typeof handler === 'function' && isHttpHandler(handler);
  if (!isHttp) throw withoutHttp(labelOf({ target, name: method }));
}

function withoutHttp(where: string): LockConfigurationError {
  return new LockConfigurationError(
    `@RequireSequencer reads a header: it is for handlers of HTTP, and ${where} is none. Put it on the routes one by one`,
    'header',
  );
}
