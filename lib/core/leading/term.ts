import { LockLostError } from '../contract/errors.js';
import type { Hold } from '../holding/hold.js';
import { LockHandle } from '../holding/lock-handle.js';

/** Lock of a leader. Its signal tells the work to end, also while the lock is still held. */
export class Term extends LockHandle {
  readonly #end = new AbortController();

  constructor(key: string, hold: Hold, onRelease: (hold: Hold) => Promise<void>) {
    super(key, hold, onRelease);
    const { signal: lost } = hold;
    lost.addEventListener('abort', () => this.#end.abort(lost.reason), { once: true });
    if (lost.aborted) this.#end.abort(lost.reason);
  }

  override get signal(): AbortSignal {
    // Reading the signal aborts it if a blocked event loop has cost the lock.
    void super.signal;
    return this.#end.signal;
  }

  /** Whether the lock is held and the work was not told to end, exact now. */
  get isLeading(): boolean {
    return this.isHeld && !this.#end.signal.aborted;
  }

  /** Tells the work to end. The lock stays held until then. */
  end(reason: 'resigned' | 'shutdown'): void {
    this.#end.abort(new LockLostError(this.key, reason));
  }
}
