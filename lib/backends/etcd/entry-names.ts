import type { EtcdLockNames } from './lock-names.js';

/**
 * Which names the places of one session have. Names are used again: until etcd is compacted, it looks through every name that
 * was ever in a range when it looks for the oldest. A name that was left in doubt stays taken for as long as the session lives,
 * as nobody knows when nothing can happen with it any more: about 100 bytes for each release that had no answer.
 */
export class EntryNames {
  readonly #taken = new Set<string>();

  constructor(
    private readonly names: EtcdLockNames,
    private readonly lease: bigint,
  ) {}

  /** A name in the queue of `key` that no other place has. */
  take(key: string): string {
    for (let number = 0; ; number += 1) {
      const name = this.names.entry(key, number, this.lease);
      if (this.#taken.has(name)) continue;
      this.#taken.add(name);
      return name;
    }
  }

  /** Only for a name with which nothing can happen any more. */
  free(name: string): void {
    this.#taken.delete(name);
  }
}
