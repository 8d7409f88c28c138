import { WaitGroup } from '../kit/wait-group.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../time/linked-queue.js';
import { NotSentError } from '../contract/errors.js';
import { hasSessions } from './lease.js';
import type { CleanUp, OwnedKey } from './owned-key.js';
import { pause } from '../time/timers.js';

/** A server that fails a thousand requests at once is not asked for a thousand releases at once. */
const MOST_AT_ONCE = 50;
const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

class Owed implements Linked<Owed> {
  before: Owed | undefined;
  after: Owed | undefined;
  queue: object | undefined;

  constructor(
    readonly owned: OwnedKey,
    /** By when the lease has ended by itself, if it does. */
    readonly goneBy: number,
  ) {}
}

/**
 * Frees owners whose requests may have been carried out, until the store confirms it or the lease has run out by
 * itself. The callers have their errors already: this only makes such leases end sooner.
 */
export class CleanUps {
  readonly #owed = new LinkedQueue<Owed>();
  readonly #open = new WaitGroup();
  readonly #closed = new AbortController();
  #workers = 0;
  /** The store failed after we were closed, and is asked for nothing more. */
  #hopeless = false;

  constructor(private readonly store: Pick<LeaseStore, 'release' | 'traits'>) {}

  readonly add: CleanUp = (owned, lastAttempt) => {
    this.#open.begin();
    const begin = (): void => {
      this.#owed.push(new Owed(owned, this.#endOf(owned)));
      if (this.#workers < MOST_AT_ONCE) void this.#work();
    };
    if (!lastAttempt) return begin();
    lastAttempt.then(begin, (error: unknown) => (error instanceof NotSentError ? this.#open.end() : begin()));
  };

  /** Resolves when each was tried once more, or one of them in vain. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#open.idle();
  }

  async #work(): Promise<void> {
    this.#workers += 1;
    let delayMs = FIRST_RETRY_MS;
    for (let owed = this.#owed.first; owed; owed = this.#owed.first) {
      this.#owed.delete(owed);
      if (await this.#isDone(owed)) {
        this.#open.end();
        delayMs = FIRST_RETRY_MS;
      } else {
        this.#owed.push(owed);
        await pause(owed.owned.clock, delayMs, { background: true, until: this.#closed.signal });
        delayMs = Math.min(delayMs * 2, LONGEST_RETRY_MS);
      }
    }
    this.#workers -= 1;
  }

  /** A lease that ends with its session is owed until the store confirms its release. */
  #endOf({ clock, ttlMs }: OwnedKey): number {
    return hasSessions(this.store) ? Infinity : clock.now() + ttlMs;
  }

  async #isDone({ owned: { key, owner, clock }, goneBy }: Owed): Promise<boolean> {
    if (this.#hopeless || clock.now() >= goneBy) return true;
    try {
      await this.store.release(key, owner);
      return true;
    } catch {
      this.#hopeless = this.#closed.signal.aborted;
      return this.#hopeless;
    }
  }
}
