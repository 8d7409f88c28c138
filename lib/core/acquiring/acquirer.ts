import { claimFor, covers, describeClaim, shown } from '../contract/claim.js';
import { LockDeadlockError } from '../contract/errors.js';
import { currentEntry } from '../holding/call-tree.js';
import type { Hold } from '../holding/hold.js';
import { currentLocks } from '../holding/lock-handle.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { Acquisition, type AcquisitionParts } from './acquisition.js';
import { KeyHeld } from './key-held.js';
import { runTraced } from './run-traced.js';

/** Acquires keys for the callers of one service. */
export class Acquirer {
  constructor(private readonly parts: AcquisitionParts) {}

  /**
   * Enters the hold of `key` that the call tree has already, if any. `KeyHeld`: the caller wants no re-entry, or more of
   * the key than the tree has, and does not wait.
   * @throws LockLostError; LockDeadlockError when the caller would wait for itself
   */
  reenter(key: string, options: ResolvedOptions): Hold | KeyHeld | undefined {
    const hold = this.#currentHold(key);
    if (!hold) return undefined;
    if (!hold.isHeld) throw hold.lossError();
    const { claim } = hold;
    const { observers, metadata } = this.parts.service;
    const wanted = claimFor(options);
    const isReentrant = options.reentrant && hold.options.reentrant;
    if (isReentrant && covers(claim, wanted)) {
      hold.enter();
      const { fencingToken } = hold;
      observers.notify('acquired', () => ({ key, fencingToken, waitedMs: 0, from: 're-entry', ...shown(claim) }));
      return hold;
    }
    if (options.waitMs === 0) return new KeyHeld(metadata);
    const upgrade = isReentrant ? { has: describeClaim(claim), asks: describeClaim(wanted) } : undefined;
    const held = currentLocks().map((lock) => lock.key);
    throw new LockDeadlockError(held, key, [], upgrade);
  }

  /** Acquires `key` anew. Tracers follow it, in the caller's context. */
  acquire(key: string, options: ResolvedOptions): Promise<Hold | KeyHeld> {
    const { observers, backend } = this.parts.service;
    const run = (): Promise<Hold | KeyHeld> => this.acquireUntraced(key, options);
    if (observers.tracers.length === 0) return run();
    return runTraced(run, { key, backend: backend.name, waitMs: options.waitMs }, observers.tracers);
  }

  acquireUntraced(key: string, options: ResolvedOptions): Promise<Hold | KeyHeld> {
    return new Acquisition(key, options, this.parts).run();
  }

  /** Returns the hold of `key` that the call tree has from this service, unless all have left it meanwhile. */
  #currentHold(key: string): Hold | undefined {
    for (let entry = currentEntry(); entry; entry = entry.outer) {
      const { hold, handle } = entry;
      // Other trees may be inside a hold that is shared.
      const hasLeft = hold.ended || (hold.isShared && handle.state === 'released');
      if (hold.listener.service === this.parts.service && hold.key === key && !hasLeft) return hold;
    }
    return undefined;
  }
}
