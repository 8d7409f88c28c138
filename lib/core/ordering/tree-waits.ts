import type { LockWait } from '../contract/errors.js';
import type { Hold } from '../holding/hold.js';
import type { Holds } from '../holding/holds.js';

/** Wait of a call tree, which has `holds`, for a key. A call tree consists of the calls that one call has started. */
interface TreeWait extends LockWait {
  readonly holds: readonly Hold[];
}

/** All waits in this process of call trees that already hold keys. */
export class TreeWaits {
  readonly #waitsByHold = new Map<Hold, Set<TreeWait>>();

  /**
   * Returns the waits of other call trees that form a circle if the tree with `treeHolds` waits for `wantedKey`.
   * `undefined`: there is no circle.
   */
  findCircle(
    serviceHolds: Holds,
    treeHolds: readonly Hold[],
    wantedKey: string,
    visitedHolds = new Set<Hold>(),
  ): LockWait[] | undefined {
    const wantedHold = serviceHolds.getById(wantedKey);
    if (!wantedHold || visitedHolds.has(wantedHold)) return undefined;
    if (treeHolds.includes(wantedHold)) return [];
    visitedHolds.add(wantedHold);
    for (const wait of this.#waitsByHold.get(wantedHold) ?? []) {
      const otherWaits = this.findCircle(serviceHolds, treeHolds, wait.wanted, visitedHolds);
      if (otherWaits) return [{ held: wait.held, wanted: wait.wanted }, ...otherWaits];
    }
    return undefined;
  }

  /** Returns a function that removes the wait. */
  add(holds: readonly Hold[], wanted: string): () => void {
    const wait = { holds, held: holds.map(({ key }) => key), wanted };
    for (const hold of holds) this.#waitsByHold.set(hold, (this.#waitsByHold.get(hold) ?? new Set()).add(wait));
    return () => {
      for (const hold of holds) {
        const waits = this.#waitsByHold.get(hold);
        waits?.delete(wait);
        if (waits?.size === 0) this.#waitsByHold.delete(hold);
      }
    };
  }
}
