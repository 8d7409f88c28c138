import { inspect } from 'node:util';
import { Logger } from '@nestjs/common';
import type { LockEvents, LockObserver } from '../core/index.js';

/** Warns of what callers do not see, or see too late: `forRoot({ backend, observers: [new LockLogger()] })`. */
export class LockLogger implements LockObserver {
  readonly #logger = new Logger('LockService');

  jeopardy({ key, cause }: LockEvents['jeopardy']): void {
    this.#logger.warn(`${JSON.stringify(key)} may soon be lost: ${messageOf(cause)}`);
  }

  lost({ key, reason, fencingToken }: LockEvents['lost']): void {
    this.#logger.warn(`${JSON.stringify(key)} is lost (${reason}), fencing token ${fencingToken}`);
  }

  backendFailed({ key, operation, error }: LockEvents['backendFailed']): void {
    this.#logger.warn(`could not ${operation} ${JSON.stringify(key)}: ${messageOf(error)}`);
  }

  healthChanged({ status, detail }: LockEvents['healthChanged']): void {
    if (status === 'down') this.#logger.warn(`the backend is down${detail === undefined ? '' : `: ${detail}`}`);
    else this.#logger.log(`the backend is ${status}`);
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : inspect(cause);
}
