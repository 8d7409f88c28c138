import { LockConfigurationError } from '../contract/errors.js';
import type { LockEvent, LockEventMethods } from './lock-observer.js';

export interface EventStreamOptions {
  /** Signal whose abort ends the stream. */
  readonly signal?: AbortSignal;
  /** Maximum number of unread events. For each further event the oldest one is dropped. @default 1_000 */
  readonly limit?: number;
}

/** Stream of all events since its creation, for `for await`. An open stream does not keep the process alive. */
export class LockEventStream implements AsyncIterableIterator<LockEvent>, AsyncDisposable {
  /** @internal */
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
  readonly #unreadEvents: LockEvent[] = [];
  readonly #waitingReaders: ((result: IteratorResult<LockEvent>) => void)[] = [];
  readonly #signal: AbortSignal | undefined;
  #hasEnded = false;
  #droppedCount = 0;

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

  /** Whether the stream has ended. Unread events can still be read. */
  get ended(): boolean {
    return this.#hasEnded;
  }

  /** Number of events that were dropped because of a slow reader. */
  get dropped(): number {
    return this.#droppedCount;
  }

  async next(): Promise<IteratorResult<LockEvent>> {
    const event = this.#unreadEvents.shift();
    if (event) return { done: false, value: event };
    if (this.#hasEnded) return { done: true, value: undefined };
    return new Promise((resolve) => this.#waitingReaders.push(resolve));
  }

  /** Ends the stream and drops unread events. `for await` calls this when the reader leaves the loop. */
  async return(): Promise<IteratorResult<LockEvent>> {
    this.#unreadEvents.length = 0;
    this.end();
    return { done: true, value: undefined };
  }

  /** Ends the stream. Unread events can still be read. Idempotent. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.onEnd(this);
    for (const resolve of this.#waitingReaders.splice(0)) resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #push(event: LockEvent): void {
    const reader = this.#waitingReaders.shift();
    if (reader) return reader({ done: false, value: event });
    this.#unreadEvents.push(event);
    if (this.#unreadEvents.length <= this.#limit) return;
    this.#unreadEvents.shift();
    this.#droppedCount += 1;
  }

  readonly #onAbort = (): void => this.end();
}
