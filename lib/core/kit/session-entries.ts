/** Owner's entry in a key's queue on the server. The entry ends with its session. */
export interface SessionEntry<Session> {
  readonly session: Session;
  /** Stops watching the entry, so that the owner is not woken any more. */
  unwatch(): void;
}

/** Queue entries of one process by owner, and the callbacks that wake waiting owners, for stores with sessions. */
export class SessionEntries<Session, Entry extends SessionEntry<Session>> {
  readonly #entries = new Map<string, Entry>();
  readonly #wakeCallbacks = new Map<string, () => void>();

  /** Registers the callback that wakes a waiting owner. Returns a function that removes it and unwatches the entry. */
  watch(owner: string, wake: () => void): () => void {
    this.#wakeCallbacks.set(owner, wake);
    return () => {
      this.#wakeCallbacks.delete(owner);
      this.#entries.get(owner)?.unwatch();
    };
  }

  /** Returns the callback that wakes an owner, or `undefined` for an owner that does not wait. */
  getWakeCallback(owner: string): (() => void) | undefined {
    return this.#wakeCallbacks.get(owner);
  }

  get(owner: string): Entry | undefined {
    return this.#entries.get(owner);
  }

  /** Returns the owner's entry in `session`. Creates one where the owner has none, or one of an earlier session. */
  getOrCreate(owner: string, session: Session, create: () => Entry): Entry {
    const existingEntry = this.#entries.get(owner);
    if (existingEntry?.session === session) return existingEntry;
    existingEntry?.unwatch();
    const entry = create();
    this.#entries.set(owner, entry);
    return entry;
  }

  delete(owner: string): void {
    this.#entries.delete(owner);
  }
}
