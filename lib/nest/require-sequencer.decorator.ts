import {
  BadRequestException,
  type CanActivate,
  ConflictException,
  type ExecutionContext,
  Inject,
  Injectable,
  UseGuards,
} from '@nestjs/common';
import { LockConfigurationError, type LockService } from '../core/index.js';
import { getLockServiceToken } from './inject-lock-service.decorator.js';

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
 * @throws LockConfigurationError when the name of the header is none; at the first call where there is no HTTP
 */
export function RequireSequencer(
  header: string,
  { backend, key }: RequireSequencerOptions = {},
): ClassDecorator & MethodDecorator {
  if (typeof header !== 'string' || !HEADER.test(header)) {
    throw new LockConfigurationError(
      `header must be the name of one, as "x-lock-sequencer"; it was "${header}"`,
      'header',
    );
  }
  const name = header.toLowerCase();

  @Injectable()
  class SequencerGuard implements CanActivate {
    constructor(@Inject(getLockServiceToken(backend)) private readonly locks: LockService) {}

    async canActivate(context: ExecutionContext): Promise<boolean> {
      if (context.getType() !== 'http') {
        throw new LockConfigurationError('@RequireSequencer reads a header, and is for HTTP only', 'header');
      }
      const request = context.switchToHttp().getRequest<HttpRequest>();
      const shown = request.headers[name];
      const state =
        typeof shown === 'string'
          ? await this.locks.checkSequencer(shown, key ? { key: key(request) } : {})
          : 'unknown';
      if (state === 'stale') throw new ConflictException('The lock that this request was made under is no longer held');
      if (state === 'unknown')
        throw new BadRequestException(`The header ${name} must show the lock to make this request under`);
      return true;
    }
  }
  return UseGuards(SequencerGuard);
}
