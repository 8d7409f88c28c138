import type { LockWait } from '../contract/errors.js';
import type { Hold } from '../holding/hold.js';
import type { Holds } from '../holding/holds.js';

interface TreeWait extends LockWait {
  readonly holds: readonly Hold[];
}

/** Waits of call trees of this process that hold a key and wait for another one. */
export class TreeWaits {
  readonly #byHold = new Map<Hold, Set<TreeWait>>();

  /**
   * Returns the waits between a tree that has `holds` and asks for `wanted`, and that tree itself. `undefined`: there is no
   * circle. @param held holds of this process
   */
  findCircle(held: Holds, holds: readonly Hold[], wanted: string, seen = new Set<Hold>()): LockWait[] | undefined {
    const holder = held.getById(wanted);
    if (!holder || seen.has(holder)) return undefined;
    if (holds.includes(holder)) return [];
    seen.add(holder);
    for (const wait of this.#byHold.get(holder) ?? []) {
      const rest = this.findCircle(held, holds, wait.wanted, seen);
      if (rest) return [{ held: wait.held, wanted: wait.wanted }, ...rest];
    }
    return undefined;
  }

  /** Adds a wait until the returned function is called. */
  add(holds: readonly Hold[], wanted: string): () => void {
    const wait = { holds, held: holds.map(({ key }) => key), wanted };
    for (const hold of holds) this.#byHold.set(hold, (this.#byHold.get(hold) ?? new Set()).add(wait));
    return () => {
      for (const hold of holds) {
        const waits = this.#byHold.get(hold);
        waits?.delete(wait);
        if (waits?.size === 0) this.#byHold.delete(hold);
      }
    };
  }
}
