import type { Holder } from '../contract/holder.js';

/** Why there is no hold: somebody else's, as far as we know whose. */
export class KeyHeld {
  constructor(
    readonly holder?: Holder,
    /** Where "is held" would not be the whole truth. */
    readonly message?: string,
  ) {}
}

/** The holder or failure in the way of a key's callers, as the caller sees it that asks the backend. */
export class Blockers {
  readonly #byKey = new Map<string, Holder | Error>();

  /** @param by `undefined`: the backend cannot say who it is */
  see(key: string, by: Holder | Error | undefined): void {
    if (by) this.#byKey.set(key, by);
    else this.#byKey.delete(key);
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }

  holder(key: string): Holder | undefined {
    const by = this.#byKey.get(key);
    return by instanceof Error ? undefined : by;
  }

  failure(key: string): Error | undefined {
    const by = this.#byKey.get(key);
    return by instanceof Error ? by : undefined;
  }
}
