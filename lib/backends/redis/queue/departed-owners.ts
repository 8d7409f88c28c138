/** For so many owners it is remembered what they have left. */
const MOST = 1_000;

/**
 * The last owners that gave their keys back, or left the line. An owner is used once, so whatever comes for one of them is
 * nobody's: a question that the network delivered late has put it into line again.
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
