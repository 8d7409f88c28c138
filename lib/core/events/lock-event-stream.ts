import { LockConfigurationError } from '../contract/errors.js';
import type { LockEvent, LockEventMethods } from './lock-observer.js';

export interface EventStreamOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** How many events wait for a reader that is slow; after that the oldest one is dropped. @default 1_000 */
  readonly limit?: number;
}

/** Events for `for await`, from the moment at which it was made. Keeps no process alive. */
export class LockEventStream implements AsyncIterableIterator<LockEvent>, AsyncDisposable {
  /** @internal The service tells it everything. */
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
  #ended = false;
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

  /** There will be no more events than those that wait to be read. */
  get ended(): boolean {
    return this.#ended;
  }

  /** How many events nobody has read in time. */
  get dropped(): number {
    return this.#dropped;
  }

  async next(): Promise<IteratorResult<LockEvent>> {
    const event = this.#waiting.shift();
    if (event) return { done: false, value: event };
    if (this.#ended) return { done: true, value: undefined };
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** The reader has read enough: what waits for it is gone. */
  async return(): Promise<IteratorResult<LockEvent>> {
    this.#waiting.length = 0;
    this.end();
    return { done: true, value: undefined };
  }

  /** Events that wait to be read can still be read. Again = nothing. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
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
