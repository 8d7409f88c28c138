import { callListener } from '../contract/call-listener.js';
import { isLockError, LockBackendError, type LockError } from '../contract/errors.js';
import { EVENT_CHANNELS } from './event-channels.js';
import { type EventStreamOptions, LockEventStream } from './lock-event-stream.js';
import type { LockEventMethods, LockEvents, LockObserver } from './lock-observer.js';
import type { LockTracer } from './lock-tracer.js';

export class Observers {
  readonly tracers: LockTracer[] = [];
  readonly #observers = new Set<LockEventMethods>();
  readonly #streams = new Set<LockEventStream>();
  #haveStreamsEnded = false;

  constructor(
    private readonly backendName: string,
    observers: readonly LockObserver[],
  ) {
    for (const observer of observers) this.addObserver(observer);
  }

  addObserver(observer: LockObserver): () => void {
    const { tracer } = observer;
    this.#observers.add(observer);
    if (tracer) this.tracers.push(tracer);
    return () => {
      this.#observers.delete(observer);
      if (tracer && this.tracers.includes(tracer)) this.tracers.splice(this.tracers.indexOf(tracer), 1);
    };
  }

  /** @throws LockConfigurationError */
  createStream(options?: EventStreamOptions): LockEventStream {
    const stream = new LockEventStream((endedStream) => {
      this.#observers.delete(endedStream.observer);
      this.#streams.delete(endedStream);
    }, options);
    if (this.#haveStreamsEnded) stream.end();
    if (stream.ended) return stream;
    this.#streams.add(stream);
    this.#observers.add(stream.observer);
    return stream;
  }

  /** Ends all streams, and each stream that is created later. */
  endStreams(): void {
    this.#haveStreamsEnded = true;
    for (const stream of this.#streams) stream.end();
  }

  /** @param operation verb for the message `could not acquire "key"` */
  toLockError(key: string, operation: string, cause: unknown): LockError {
    return isLockError(cause) ? cause : new LockBackendError(key, { backend: this.backendName, operation, cause });
  }

  /** Reports a failed operation to the observers, and returns the error for the caller. */
  notifyFailure(key: string, operation: string, cause: unknown): LockError {
    const error = this.toLockError(key, operation, cause);
    this.notify('backendFailed', () => ({ key, operation, error }));
    return error;
  }

  /** Calls `createEvent` only if there is a listener. */
  notify<Name extends keyof LockEvents>(name: Name, createEvent: () => LockEvents[Name]): void {
    const channel = EVENT_CHANNELS[name];
    if (this.#observers.size === 0 && !channel.hasSubscribers) return;
    const event = createEvent();
    for (const observer of this.#observers)
      callListener(`a lock observer threw in ${name}`, () => observer[name]?.(event));
    if (channel.hasSubscribers) channel.publish({ backend: this.backendName, ...event });
  }
}
