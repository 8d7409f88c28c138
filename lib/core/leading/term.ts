import { LockLostError } from '../contract/errors.js';
import type { Hold } from '../holding/hold.js';
import { LockHandle } from '../holding/lock-handle.js';

/** The lock of one who leads. Its signal tells the work to end, also while the lock is still held. */
export class Term extends LockHandle {
  readonly #end = new AbortController();

  constructor(key: string, hold: Hold, onRelease: (hold: Hold) => Promise<void>) {
    super(key, hold, onRelease);
    const { signal: lost } = hold;
    lost.addEventListener('abort', () => this.#end.abort(lost.reason), { once: true });
    if (lost.aborted) this.#end.abort(lost.reason);
  }

  override get signal(): AbortSignal {
    // Aborts now where the loop was blocked for so long that the lock is lost.
    void super.signal;
    return this.#end.signal;
  }

  /** Held, and not told to end. Exact now. */
  get leads(): boolean {
    return this.isHeld && !this.#end.signal.aborted;
  }

  /** Has the work end. The lock stays held until then. */
  end(reason: 'resigned' | 'shutdown'): void {
    this.#end.abort(new LockLostError(this.key, reason));
  }
}
