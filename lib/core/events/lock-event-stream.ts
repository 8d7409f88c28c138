import { LockConfigurationError } from '../contract/errors.js';
import type { LockEvent, LockEventMethods } from './lock-observer.js';

export interface EventStreamOptions {
  /** Signal whose abort ends the stream. */
  readonly signal?: AbortSignal;
  /** Maximum number of events that wait for a slow reader. Beyond it the oldest one is dropped. @default 1_000 */
  readonly limit?: number;
}

/** Stream of all events since it was made, for `for await`. Keeps no process alive. */
export class LockEventStream implements AsyncIterableIterator<LockEvent>, AsyncDisposable {
  /** @internal Observer that the service tells all events. */
  readonly observer: Required<LockEventMethods> = {
    waiting: (event) => this.#push({ type: 'waiting', ...event }),
    acquired: (event) => this.#push({ type: 'acquired', ...event }),
    released: (event) => this.#push({ type: 'released', ...event }),
    timedOut: (event) => this.#push({ type: 'timedOut', ...event }),
    jeopardy: (event) => this.#push({ type: 'jeopardy', ...event }),
    safe: (event) => this.#push({ type: 'safe', ...event }),
    lost: (event) => this.#push({ type: 'lost', ...event }),
    termBegan: (event) => this.#push({ type: 'termBegan', ...event }),
    termEnded: (event) => this.#push({ type: 'termEnded', ...event }),
    backendFailed: (event) => this.#push({ type: 'backendFailed', ...event }),
    orderSuspect: (event) => this.#push({ type: 'orderSuspect', ...event }),
    healthChanged: (event) => this.#push({ type: 'healthChanged', ...event }),
  };
  readonly #limit: number;
  readonly #waiting: LockEvent[] = [];
  readonly #readers: ((result: IteratorResult<LockEvent>) => void)[] = [];
  readonly #signal: AbortSignal | undefined;
  #hasEnded = false;
  #dropped = 0;

  /** @internal */
  constructor(
    private readonly onEnd: (stream: LockEventStream) => void,
    { signal, limit = 1_000 }: EventStreamOptions = {},
  ) {
    if (!Number.isInteger(limit) || limit < 1) {
      throw new LockConfigurationError(`limit must be a whole number from 1 up; it was ${String(limit)}`, 'limit');
    }
    this.#limit = limit;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
    if (signal?.aborted === true) this.end();
  }

  /** Whether the stream has ended. Events that wait to be read can still be read. */
  get ended(): boolean {
    return this.#hasEnded;
  }

  /** Number of events that were dropped, because the reader was too slow. */
  get dropped(): number {
    return this.#dropped;
  }

  async next(): Promise<IteratorResult<LockEvent>> {
    const event = this.#waiting.shift();
    if (event) return { done: false, value: event };
    if (this.#hasEnded) return { done: true, value: undefined };
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** Ends the stream for a reader that has read enough, and drops the events that wait. */
  async return(): Promise<IteratorResult<LockEvent>> {
    this.#waiting.length = 0;
    this.end();
    return { done: true, value: undefined };
  }

  /** Ends the stream. Events that wait can still be read. Idempotent. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.onEnd(this);
    for (const resolve of this.#readers.splice(0)) resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #push(event: LockEvent): void {
    const reader = this.#readers.shift();
    if (reader) return reader({ done: false, value: event });
    this.#waiting.push(event);
    if (this.#waiting.length <= this.#limit) return;
    this.#waiting.shift();
    this.#dropped += 1;
  }

  readonly #onAbort = (): void => this.end();
}
