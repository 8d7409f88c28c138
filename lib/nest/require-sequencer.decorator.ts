import {
  BadRequestException,
  type CanActivate,
  ConflictException,
  type ExecutionContext,
  Inject,
  Injectable,
  type OnModuleInit,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { LockConfigurationError, type LockService } from '../core/index.js';
import { getLockServiceToken } from './inject-lock-service.decorator.js';
import { isForeignHandler, isRoute } from './method-metadata.js';

export interface RequireSequencerOptions {
  /** The name of the backend that the locks are kept by. @default 'default' */
  readonly backend?: string;
  /** Of which key the sequencer has to be, without the namespace. @default any */
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
 * Lets only those in who hold a lock: `@RequireSequencer('x-lock-sequencer')` on a controller or a handler, for requests that
 * carry `lock.sequencer()` in that header. 409 when the lock is no longer held, 400 without a sequencer, for one of another
 * backend, or of another key than `key` says; 503 when the backend does not answer. It is checked once, before the handler:
 * what is written later is protected by the fencing token only.
 * @throws LockConfigurationError when the name of the header is none; at the start where there is no HTTP
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

function guardClass(
  header: string,
  { backend, key }: RequireSequencerOptions,
  assertUsable: () => void,
): Type<CanActivate> {
  @Injectable()
  class SequencerGuard implements CanActivate, OnModuleInit {
    constructor(@Inject(getLockServiceToken(backend)) private readonly locks: LockService) {}

    /** The other decorators of what it guards are known by then. */
    onModuleInit(): void {
      assertUsable();
    }

    async canActivate(context: ExecutionContext): Promise<boolean> {
      if (context.getType() !== 'http') throw withoutHttp(context.getHandler().name);
      const request = context.switchToHttp().getRequest<HttpRequest>();
      const shown = request.headers[header];
      // A request that leaves out what its key is made of must not choose the key.
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

/** @throws LockConfigurationError when Nest will never ask the guard, or with something that has no headers */
function assertHttp(target: object, method: string | symbol | undefined): void {
  if (method === undefined) {
    const prototype: unknown = Reflect.get(target, 'prototype');
    const foreign = methodsOf(prototype).find(([, handler]) => isForeignHandler(handler));
    if (foreign) throw withoutHttp(`${nameOf(target)}.${foreign[0]}`);
    return;
  }
  const handler: unknown = Reflect.get(target, method);
  if (typeof handler !== 'function' || !isRoute(handler))
    throw withoutHttp(`${nameOf(target.constructor)}.${String(method)}`);
}

/** With those that a class inherits. */
function methodsOf(prototype: unknown): readonly [name: string, method: object][] {
  if (typeof prototype !== 'object' || prototype === null) return [];
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(
    ([name, { value }]): [string, object][] => (typeof value === 'function' ? [[name, value]] : []),
  );
  return [...own, ...methodsOf(Object.getPrototypeOf(prototype))];
}

function nameOf(target: object): string {
  return 'name' in target ? String(target.name) : 'a class';
}

function withoutHttp(where: string): LockConfigurationError {
  return new LockConfigurationError(
    `@RequireSequencer reads a header: it is for handlers of HTTP, and ${where} is none. Put it on the routes one by one`,
    'header',
  );
}
