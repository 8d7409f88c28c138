/** How many owners are remembered. */
const MOST = 1_000;

/**
 * The last owners that released a key or left the line. An owner is used once: a key that is handed to one of them later
 * answers a question that the network delivered late.
 */
export class DepartedOwners {
  readonly #keys = new Map<string, string>();

  add(owner: string, key: string): void {
    this.#keys.set(owner, key);
    if (this.#keys.size <= MOST) return;
    const [oldest] = this.#keys.keys();
    if (oldest !== undefined) this.#keys.delete(oldest);
  }

  keyOf(owner: string): string | undefined {
    return this.#keys.get(owner);
  }
}
