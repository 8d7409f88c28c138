import { Deadline } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { LockSession } from './lock-session.js';

/** Maximum number of keys that are remembered. The oldest key is forgotten first. */
const MAX_KEYS = 1_000;
/** Maximum number of owners that are remembered for one key. The oldest owner is forgotten first. */
const MAX_OWNERS_PER_KEY = 16;

/**
 * Keys that were requested on a session which was lost before the answer. The server may have granted such a key, and
 * then keeps it for the lost session. No caller relies on such a grant.
 */
export class UnansweredGrants {
  readonly #ownersByKey = new Map<string, Set<string>>();

  remember(key: string, owner: string): void {
    const owners = this.#ownersByKey.get(key) ?? new Set<string>();
    this.#ownersByKey.delete(key);
    this.#ownersByKey.set(key, owners.add(owner));
    for (const oldestOwner of owners) if (owners.size > MAX_OWNERS_PER_KEY) owners.delete(oldestOwner);
    for (const oldestKey of this.#ownersByKey.keys())
      if (this.#ownersByKey.size > MAX_KEYS) this.#ownersByKey.delete(oldestKey);
  }

  has(key: string): boolean {
    return this.#ownersByKey.has(key);
  }

  /** Ends the lost sessions that have the key, and resolves to whether there was one. Forgets the key then. */
  async takeBack(session: LockSession, key: string, timeoutMs: number): Promise<boolean> {
    const deadline = Deadline.after(timeoutMs);
    let hasTakenBack = false;
    for (const owner of this.#ownersByKey.get(key) ?? []) {
      try {
        if (await session.endLostSessionHolding(key, owner, deadline)) hasTakenBack = true;
      } catch (error) {
        // A server that refuses to end the session keeps the key until `sessionTtlMs` have passed.
        if (!(error instanceof DatabaseError && error.isServerAnswer)) throw error;
      }
      this.#ownersByKey.get(key)?.delete(owner);
    }
    if (this.#ownersByKey.get(key)?.size === 0) this.#ownersByKey.delete(key);
    return hasTakenBack;
  }
}
