/** An owner's entry in the queue of a key on the server. The entry ends with the session that it was made in. */
export interface SessionEntry<Session> {
  readonly session: Session;
  /** Ends the watch of the entry: its wake-up is not called any more. */
  unwatch(): void;
}

/** Queue entries of one process by owner, and the wake-ups of the owners that wait, for stores with sessions. */
export class SessionEntries<Session, Entry extends SessionEntry<Session>> {
  readonly #entries = new Map<string, Entry>();
  readonly #wakeUps = new Map<string, () => void>();

  /** Registers the wake-up of a waiting owner. Returns a function that ends the wait and the watch of the entry. */
  watch(owner: string, wake: () => void): () => void {
    this.#wakeUps.set(owner, wake);
    return () => {
      this.#wakeUps.delete(owner);
      this.#entries.get(owner)?.unwatch();
    };
  }

  /** Returns the wake-up of an owner; `undefined` for an owner that does not wait. */
  wakeUpOf(owner: string): (() => void) | undefined {
    return this.#wakeUps.get(owner);
  }

  get(owner: string): Entry | undefined {
    return this.#entries.get(owner);
  }

  /** Returns the owner's entry in `session`. Creates one where the owner has none, or one of an earlier session. */
  getOrCreate(owner: string, session: Session, create: () => Entry): Entry {
    const present = this.#entries.get(owner);
    if (present?.session === session) return present;
    present?.unwatch();
    const entry = create();
    this.#entries.set(owner, entry);
    return entry;
  }

  delete(owner: string): void {
    this.#entries.delete(owner);
  }
}
