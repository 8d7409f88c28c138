const MAX_OWNERS = 5_000;

/**
 * Owners to which the server may grant a key that they no longer want. The network may delay an acquisition, and a
 * queue may grant the key to a waiter that has left.
 */
export class LateGrantOwners {
  /** Keys by owner; `undefined` until the owner has released its key. */
  readonly #keyByOwner = new Map<string, string | undefined>();

  add(owner: string): void {
    if (this.#keyByOwner.has(owner)) return;
    this.#keyByOwner.set(owner, undefined);
    if (this.#keyByOwner.size <= MAX_OWNERS) return;
    const [oldestOwner = owner] = this.#keyByOwner.keys();
    this.#keyByOwner.delete(oldestOwner);
  }

  noteRelease(key: string, owner: string): void {
    if (this.#keyByOwner.has(owner)) this.#keyByOwner.set(owner, key);
  }

  /** Returns the key that the owner has released. A grant that arrives after this release must be released as well. */
  releasedKeyOf(owner: string): string | undefined {
    return this.#keyByOwner.get(owner);
  }
}
