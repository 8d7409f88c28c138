import { WaitGroup } from '../kit/wait-group.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../time/linked-queue.js';
import { NotSentError } from '../contract/errors.js';
import { hasSessions } from './lease.js';
import type { CleanUp, OwnedKey } from './owned-key.js';
import { pause } from '../time/timers.js';

/** Maximum number of releases at a time: a server may have failed a thousand requests at once. */
const MAX_AT_ONCE = 50;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/** Release that the store has not confirmed yet. */
class OwedRelease implements Linked<OwedRelease> {
  before: OwedRelease | undefined;
  after: OwedRelease | undefined;
  queue: object | undefined;

  constructor(
    readonly owned: OwnedKey,
    /** Time by which the lease has ended by itself, if it does. */
    readonly goneBy: number,
  ) {}
}

/**
 * Repeats releases in the background until the store confirms them, or until the leases have run out. The callers have
 * their errors already: this only makes their leases end sooner.
 */
export class CleanUps {
  readonly #owed = new LinkedQueue<OwedRelease>();
  readonly #open = new WaitGroup();
  readonly #closed = new AbortController();
  #workers = 0;
  /** Whether the store failed after the close, so that it is not asked again. */
  #hasGivenUp = false;

  constructor(private readonly store: Pick<LeaseStore, 'release' | 'traits'>) {}

  readonly add: CleanUp = (owned, lastAttempt) => {
    this.#open.begin();
    const begin = (): void => {
      this.#owed.push(new OwedRelease(owned, this.#endOf(owned)));
      if (this.#workers < MAX_AT_ONCE) void this.#work();
    };
    if (!lastAttempt) return begin();
    lastAttempt.then(begin, (error: unknown) => (error instanceof NotSentError ? this.#open.end() : begin()));
  };

  /** Tries each release once more, and resolves when all have ended or one has failed. */
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
        delayMs = Math.min(delayMs * 2, MAX_RETRY_MS);
      }
    }
    this.#workers -= 1;
  }

  /** Returns when the lease ends by itself. One that ends with its session is owed until the store confirms it. */
  #endOf({ clock, ttlMs }: OwnedKey): number {
    return hasSessions(this.store) ? Infinity : clock.now() + ttlMs;
  }

  async #isDone({ owned: { key, owner, clock }, goneBy }: OwedRelease): Promise<boolean> {
    if (this.#hasGivenUp || clock.now() >= goneBy) return true;
    try {
      await this.store.release(key, owner);
      return true;
    } catch {
      this.#hasGivenUp = this.#closed.signal.aborted;
      return this.#hasGivenUp;
    }
  }
}
