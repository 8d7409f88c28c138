import { inspect } from 'node:util';
import { Logger, type LoggerService } from '@nestjs/common';
import type { LockEvents, LockObserver } from '../../core/index.js';

export interface LockLoggerOptions {
  /** Logger that the messages go to. @default a Nest logger with the context `LockService` */
  readonly logger?: LoggerService;
  /** Name to write before each message, where there are several backends. @default '' */
  readonly backend?: string;
}

/**
 * Logs events that callers do not see, or see too late. `DistributedLockModule` makes a `LockLogger` for each backend,
 * unless its option `logger` is `false`. For a service without the module:
 * `new LockService(backend, { observers: [new LockLogger()] })`.
 */
export class LockLogger implements LockObserver {
  readonly #logger: LoggerService;
  readonly #prefix: string;
  #isDown = false;

  constructor({ logger = new Logger('LockService'), backend = '' }: LockLoggerOptions = {}) {
    this.#logger = logger;
    this.#prefix = backend === '' ? '' : `${backend}: `;
  }

  jeopardy({ key, cause }: LockEvents['jeopardy']): void {
    this.#warn(`${JSON.stringify(key)} may soon be lost${cause === undefined ? '' : `: ${getErrorMessage(cause)}`}`);
  }

  safe({ key }: LockEvents['safe']): void {
    this.#logger.log(`${this.#prefix}${JSON.stringify(key)} is safe again`);
  }

  lost({ key, reason, fencingToken }: LockEvents['lost']): void {
    this.#warn(`${JSON.stringify(key)} is lost (${reason}), fencing token ${fencingToken}`);
  }

  termBegan({ key, fencingToken }: LockEvents['termBegan']): void {
    this.#logger.log(`${this.#prefix}leads ${JSON.stringify(key)}, fencing token ${fencingToken}`);
  }

  termEnded({ key, reason, error }: LockEvents['termEnded']): void {
    const message = `leads ${JSON.stringify(key)} no more (${reason})`;
    if (error === undefined) this.#logger.log(`${this.#prefix}${message}`);
    else this.#warn(`${message}: ${getErrorMessage(error)}`);
  }

  /**
   * Logs the error, at `debug` if it is reported elsewhere. The callers of `acquire` get their errors, and
   * `healthChanged` has reported a server that is down at the start.
   */
  backendFailed({ operation, error }: LockEvents['backendFailed']): void {
    const message = getErrorMessage(error);
    const isReportedElsewhere = operation === 'acquire' || (operation === 'start' && this.#isDown);
    if (isReportedElsewhere) this.#logger.debug?.(`${this.#prefix}${message}`);
    else this.#warn(message);
  }

  orderSuspect({ orders }: LockEvents['orderSuspect']): void {
    const lines = orders.map(
      ({ held, wanted, stack }) => `${JSON.stringify(wanted)} under ${JSON.stringify(held)}\n${stack}`,
    );
    this.#warn(`locks are taken in orders that can deadlock:\n${lines.join('\n')}`);
  }

  healthChanged({ status, detail }: LockEvents['healthChanged']): void {
    this.#isDown = status === 'down';
    const message = `the backend is ${status}${detail === undefined ? '' : `: ${detail}`}`;
    if (status === 'down') this.#warn(message);
    else if (status === 'up') this.#logger.log(`${this.#prefix}${message}`);
  }

  #warn(message: string): void {
    this.#logger.warn(`${this.#prefix}${message}`);
  }
}

function getErrorMessage(cause: unknown): string {
  return cause instanceof Error ? cause.message : inspect(cause);
}
