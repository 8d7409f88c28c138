import { isLockError, LockBackendError, type LockError } from '../contract/errors.js';
import { EVENT_CHANNELS } from './event-channels.js';
import { type EventStreamOptions, LockEventStream } from './lock-event-stream.js';
import type { LockEventMethods, LockEvents, LockObserver } from './lock-observer.js';
import type { LockTracer } from './lock-tracer.js';

/** Passes each event on to every observer, to every stream that is open, and to the channel of its name. */
export class Observers {
  /** Tracers of the observers. Most services have none. */
  readonly tracers: LockTracer[] = [];
  readonly #observers = new Set<LockEventMethods>();
  readonly #streams = new Set<LockEventStream>();

  constructor(
    private readonly backend: string,
    observers: readonly LockObserver[],
  ) {
    for (const observer of observers) this.add(observer);
  }

  add(observer: LockObserver): () => void {
    const { tracer } = observer;
    this.#observers.add(observer);
    if (tracer) this.tracers.push(tracer);
    return () => {
      this.#observers.delete(observer);
      if (tracer && this.tracers.includes(tracer)) this.tracers.splice(this.tracers.indexOf(tracer), 1);
    };
  }

  /** @throws LockConfigurationError */
  stream(options?: EventStreamOptions): LockEventStream {
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

  /** Returns the error for a failure of the backend. @param operation as in `could not acquire "key"` */
  createFailure(key: string, operation: string, cause: unknown): LockError {
    return isLockError(cause) ? cause : new LockBackendError(key, { backend: this.backend, operation, cause });
  }

  /** Tells observers of a failure, and returns its error. */
  notifyFailure(key: string, operation: string, cause: unknown): LockError {
    const error = this.createFailure(key, operation, cause);
    this.notify('backendFailed', () => ({ key, operation, error }));
    return error;
  }

  /** Tells all who listen of an event. @param describe is called once, or not at all if nothing listens */
  notify<Name extends keyof LockEvents>(name: Name, describe: () => LockEvents[Name]): void {
    const channel = EVENT_CHANNELS[name];
    if (this.#observers.size === 0 && !channel.hasSubscribers) return;
    const event = describe();
    for (const observer of this.#observers) tell(observer, name, event);
    if (channel.hasSubscribers) channel.publish({ backend: this.backend, ...event });
  }
}

function tell<Name extends keyof LockEvents>(observer: LockEventMethods, name: Name, event: LockEvents[Name]): void {
  const warn = (error: unknown): void => emitWarningOf(`a lock observer threw in ${name}`, error);
  try {
    const told: unknown = observer[name]?.(event);
    // An async function fits the type of an observer, too. Its promise may be of another library.
    if (typeof told === 'object' && told !== null) Promise.resolve(told).catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** Warns of an error that no caller could catch. */
export function emitWarningOf(what: string, error: unknown): void {
  process.emitWarning(`${what}: ${textOf(error)}`);
}

/** An object without a prototype cannot become a string. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'an object that has no text';
  }
}
