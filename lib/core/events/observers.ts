import { LockBackendError, LockError } from '../contract/errors.js';
import { type EventStreamOptions, LockEventStream } from './lock-event-stream.js';
import type { LockEvents, LockObserver } from './lock-observer.js';

/** Passes each event on to every observer, and to every stream that is open. */
export class Observers {
  readonly #streams = new Set<LockEventStream>();

  constructor(
    private readonly backend: string,
    private readonly observers: readonly LockObserver[],
  ) {}

  /** @throws LockConfigurationError */
  stream(options?: EventStreamOptions): LockEventStream {
    const stream = new LockEventStream((ended) => this.#streams.delete(ended), options);
    if (!stream.ended) this.#streams.add(stream);
    return stream;
  }

  endStreams(): void {
    for (const stream of this.#streams) stream.end();
  }

  /** Names what the backend could not do. @param operation as in `could not acquire "key"` */
  failureOf(key: string, operation: string, cause: unknown): LockError {
    return cause instanceof LockError ? cause : new LockBackendError(key, { backend: this.backend, operation, cause });
  }

  /** Tells it, too. */
  notifyFailure(key: string, operation: string, cause: unknown): LockError {
    const error = this.failureOf(key, operation, cause);
    this.notify('backendFailed', () => ({ key, operation, error }));
    return error;
  }

  /** `describe` is called once if anybody listens, and else not at all. */
  notify<Name extends keyof LockEvents>(name: Name, describe: () => LockEvents[Name]): void {
    if (this.observers.length === 0 && this.#streams.size === 0) return;
    const event = describe();
    for (const observer of this.observers) tell(observer, name, event);
    for (const { observer } of this.#streams) tell(observer, name, event);
  }
}

function tell<Name extends keyof LockEvents>(observer: LockObserver, name: Name, event: LockEvents[Name]): void {
  const warn = (error: unknown): void => process.emitWarning(`a lock observer threw in ${name}: ${textOf(error)}`);
  try {
    const told: unknown = observer[name]?.(event);
    // An async function fits the type of an observer, too. Its promise may be of another library.
    if (typeof told === 'object' && told !== null) Promise.resolve(told).catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** An object without a prototype cannot become a string. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'an object that has no text';
  }
}
