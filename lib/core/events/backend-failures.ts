import { LockBackendError, LockError } from '../contract/errors.js';
import type { Observers } from './observers.js';

/** Names what a backend could not do, and tells observers. */
export class BackendFailures {
  constructor(
    private readonly backend: string,
    private readonly observers: Observers,
  ) {}

  /** @param operation as in `could not acquire "key"` */
  errorOf(key: string, operation: string, cause: unknown): LockError {
    return cause instanceof LockError ? cause : new LockBackendError(key, { backend: this.backend, operation, cause });
  }

  report(key: string, operation: string, cause: unknown): LockError {
    const error = this.errorOf(key, operation, cause);
    this.observers.notify('backendFailed', () => ({ key, operation, error }));
    return error;
  }
}
