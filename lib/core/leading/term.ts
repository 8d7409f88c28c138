import { LockConfigurationError, LockLostError } from '../contract/errors.js';
import type { Hold } from '../holding/hold.js';
import { LockHandle } from '../holding/lock-handle.js';
import { createUnlimitedAbortController } from '../time/unlimited-abort-controller.js';

/** Lock of a leader. Its signal aborts when the work has to end, which may be before the lock ends. */
export class Term extends LockHandle {
  readonly #endController = createUnlimitedAbortController();
  readonly #fullKey: string;

  constructor(key: string, hold: Hold, onRelease: (hold: Hold) => Promise<void>) {
    super(key, hold, onRelease);
    this.#fullKey = hold.key;
    const { signal: lossSignal } = hold;
    lossSignal.addEventListener('abort', () => this.#endController.abort(lossSignal.reason), { once: true });
    if (lossSignal.aborted) this.#endController.abort(lossSignal.reason);
  }

  override get signal(): AbortSignal {
    // Reading the hold's signal detects a loss that happened while the event loop was blocked.
    void super.signal;
    return this.#endController.signal;
  }

  override transfer(): Promise<never> {
    const message = 'the lock of a leader cannot be transferred: the next leader is elected after resign()';
    return Promise.reject(new LockConfigurationError(message, 'transfer', this.#fullKey));
  }

  get isLeading(): boolean {
    return this.isHeld && !this.#endController.signal.aborted;
  }

  /** Aborts the signal of the work. The lock stays held until the work has ended. */
  end(reason: 'resigned' | 'shutdown'): void {
    this.#endController.abort(new LockLostError(this.#fullKey, reason));
  }
}
