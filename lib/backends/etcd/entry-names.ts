import type { EtcdLockNames } from './lock-names.js';

/**
 * The names of the entries of one session. They are used again, because etcd looks for the oldest through every name
 * that a range had since the last compaction. A name whose release had no answer stays taken while the session lives:
 * about 100 bytes.
 */
export class EntryNames {
  readonly #taken = new Set<string>();

  constructor(
    private readonly names: EtcdLockNames,
    private readonly lease: bigint,
  ) {}

  /** A name in the queue of `key` that no other entry has. */
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
