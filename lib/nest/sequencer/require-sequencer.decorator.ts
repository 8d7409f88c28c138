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
import { getMethodLabel } from '../../decorators/declaration.js';
import { getLockServiceToken } from '../inject-lock-service.decorator.js';
import { isNonHttpHandler, isHttpHandler } from '../method-metadata.js';

export interface RequireSequencerOptions {
  /** Name of the backend that keeps the locks. @default 'default' */
  readonly backend?: string;
  /** Function that returns the key that the sequencer must have, without the namespace. @default any key */
  readonly key?: (request: { readonly params: unknown; readonly query: unknown; readonly body: unknown }) => string;
}

interface HttpRequest {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** Pattern of a header's name: https://www.rfc-editor.org/rfc/rfc9110#name-tokens */
const HEADER_PATTERN = /^[!#$%&'*+.^_`|~\w-]+$/u;

/**
 * Admits only requests of a lock's holder: `@RequireSequencer('x-lock-sequencer')` on a controller or a handler, for
 * requests with `lock.sequencer()` in that header. The status is 409 when the lock is no longer held, and 503 when the
 * backend does not answer. It is 400 when the sequencer is missing, or belongs to another backend or key. The guard
 * checks once, before the handler: only the fencing token protects later writes.
 * @throws LockConfigurationError at decoration: an invalid header name; at the start: a handler that answers no HTTP
 */
export function RequireSequencer(
  header: string,
  options: RequireSequencerOptions = {},
): ClassDecorator & MethodDecorator {
  if (typeof header !== 'string' || !HEADER_PATTERN.test(header)) {
    throw new LockConfigurationError(
      `header must be the name of one, as "x-lock-sequencer"; it was "${header}"`,
      'header',
    );
  }
  const lowerCaseHeader = header.toLowerCase();
  return (target: object, method?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const useGuard = UseGuards(createGuardClass(lowerCaseHeader, options, () => assertHttpOnly(target, method)));
    if (typeof target === 'function') useGuard(target);
    else if (method !== undefined && descriptor) useGuard(target, method, descriptor);
  };
}

function createGuardClass(header: string, { backend, key }: RequireSequencerOptions, assertHttpHandlers: () => void) {
  @Injectable()
  class SequencerGuard implements CanActivate, OnModuleInit {
    constructor(@Inject(getLockServiceToken(backend)) private readonly locks: LockService) {}

    /** Checks the methods at the start, because the decorators that make them handlers may be called after this one. */
    onModuleInit(): void {
      assertHttpHandlers();
    }

    async canActivate(context: ExecutionContext): Promise<boolean> {
      if (context.getType() !== 'http') throw createHttpOnlyError(context.getHandler().name);
      const request = context.switchToHttp().getRequest<HttpRequest>();
      const sequencer = request.headers[header];
      // `key` may return `undefined` in spite of its type. The property is then present, and no sequencer matches.
      const requirement: { key?: string } = key ? { key: key(request) } : {};
      const state = typeof sequencer === 'string' ? await this.locks.checkSequencer(sequencer, requirement) : 'unknown';
      if (state === 'stale') throw new ConflictException('The lock that this request was made under is no longer held');
      if (state === 'unknown')
        throw new BadRequestException(`The header ${header} must show the lock to make this request under`);
      return true;
    }
  }
  return SequencerGuard;
}

/** @throws LockConfigurationError when the method, or a handler of the class, does not answer HTTP requests */
function assertHttpOnly(target: object, method: string | symbol | undefined): void {
  if (method === undefined) {
    const prototype: object = Reflect.get(target, 'prototype');
    const names = new MetadataScanner().getAllMethodNames(prototype);
    const nonHttpName = names.find((name) => isNonHttpHandler(Reflect.get(prototype, name)));
    if (nonHttpName !== undefined) throw createHttpOnlyError(getMethodLabel({ target: prototype, name: nonHttpName }));
    return;
  }
  const handler: unknown = Reflect.get(target, method);
  const isHttp = typeof handler === 'function' && isHttpHandler(handler);
  if (!isHttp) throw createHttpOnlyError(getMethodLabel({ target, name: method }));
}

function createHttpOnlyError(handlerLabel: string): LockConfigurationError {
  return new LockConfigurationError(
    `@RequireSequencer reads a header: it is for handlers of HTTP, and ${handlerLabel} is none. Put it on the routes one by one`,
    'header',
  );
}
