import { isLockError, LockBackendError, type LockError } from '../contract/errors.js';
import { EVENT_CHANNELS } from './event-channels.js';
import { type EventStreamOptions, LockEventStream } from './lock-event-stream.js';
import type { LockEventMethods, LockEvents, LockObserver } from './lock-observer.js';
import type { LockTracer } from './lock-tracer.js';

/** Sends each event to every observer, to every open stream, and to the diagnostics channel of the event. */
export class Observers {
  /** Tracers of the observers. Most services have none. */
  readonly tracers: LockTracer[] = [];
  readonly #observers = new Set<LockEventMethods>();
  readonly #streams = new Set<LockEventStream>();

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
    const stream = new LockEventStream((ended) => {
      this.#observers.delete(ended.observer);
      this.#streams.delete(ended);
    }, options);
    if (stream.ended) return stream;
    this.#streams.add(stream);
    this.#observers.add(stream.observer);
    return stream;
  }

  endStreams(): void {
    for (const stream of this.#streams) stream.end();
  }

  /** Returns the error for a failure of the backend. @param operation verb for the message `could not acquire "key"` */
  createFailure(key: string, operation: string, cause: unknown): LockError {
    return isLockError(cause) ? cause : new LockBackendError(key, { backend: this.backendName, operation, cause });
  }

  /** Reports a failure to observers, and returns its error. */
  notifyFailure(key: string, operation: string, cause: unknown): LockError {
    const error = this.createFailure(key, operation, cause);
    this.notify('backendFailed', () => ({ key, operation, error }));
    return error;
  }

  /** Reports an event. @param describe is called once, or not at all without listeners */
  notify<Name extends keyof LockEvents>(name: Name, describe: () => LockEvents[Name]): void {
    const channel = EVENT_CHANNELS[name];
    if (this.#observers.size === 0 && !channel.hasSubscribers) return;
    const event = describe();
    for (const observer of this.#observers) callObserver(observer, name, event);
    if (channel.hasSubscribers) channel.publish({ backend: this.backendName, ...event });
  }
}

function callObserver<Name extends keyof LockEvents>(
  observer: LockEventMethods,
  name: Name,
  event: LockEvents[Name],
): void {
  const warn = (error: unknown): void => emitWarningOf(`a lock observer threw in ${name}`, error);
  try {
    const result: unknown = observer[name]?.(event);
    // An async method fits the type of an observer, too, and its promise may reject.
    if (typeof result === 'object' && result !== null) Promise.resolve(result).catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** Warns of an error that no caller could catch. */
export function emitWarningOf(occurrence: string, error: unknown): void {
  process.emitWarning(`${occurrence}: ${textOf(error)}`);
}

/** Converts any value to a string. An object without a prototype would throw. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'an object that has no text';
  }
}
