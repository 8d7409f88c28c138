import { WaitGroup } from '../kit/wait-group.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../time/linked-queue.js';
import { NotSentError } from '../contract/errors.js';
import { hasSessions } from './lease.js';
import type { CleanUp, OwnedKey } from './owned-key.js';
import { pause } from '../time/timers.js';

/** Maximum number of releases at a time. A restart of the server may leave thousands to do. */
const MAX_AT_ONCE = 50;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/** Release that the store has not confirmed yet. */
class UnconfirmedRelease implements Linked<UnconfirmedRelease> {
  before: UnconfirmedRelease | undefined;
  after: UnconfirmedRelease | undefined;
  queue: object | undefined;

  constructor(
    readonly ownedKey: OwnedKey,
    /** Time by which the lease has ended by itself; `Infinity` for a lease that its session keeps. */
    readonly leaseEndsAt: number,
  ) {}
}

/**
 * Repeats releases in the background until the store confirms them, or until the leases have expired. No caller waits
 * for them: they only free keys earlier than the TTL would.
 */
export class CleanUps {
  readonly #releases = new LinkedQueue<UnconfirmedRelease>();
  readonly #unconfirmed = new WaitGroup();
  readonly #closeController = new AbortController();
  #workerCount = 0;
  /** Whether the store failed after the close, which ends all attempts. */
  #hasGivenUp = false;

  constructor(private readonly store: Pick<LeaseStore, 'release' | 'traits'>) {}

  readonly add: CleanUp = (ownedKey, lastAttempt) => {
    this.#unconfirmed.begin();
    const enqueue = (): void => {
      this.#releases.push(new UnconfirmedRelease(ownedKey, this.#leaseEndOf(ownedKey)));
      if (this.#workerCount < MAX_AT_ONCE) void this.#runWorker();
    };
    if (!lastAttempt) return enqueue();
    lastAttempt.then(enqueue, (error: unknown) =>
      error instanceof NotSentError ? this.#unconfirmed.end() : enqueue(),
    );
  };

  /** Tries each release once more. Resolves when all are confirmed, or when one has failed. */
  async close(): Promise<void> {
    this.#closeController.abort();
    await this.#unconfirmed.untilIdle();
  }

  async #runWorker(): Promise<void> {
    this.#workerCount += 1;
    let delayMs = FIRST_RETRY_MS;
    for (let release = this.#releases.first; release; release = this.#releases.first) {
      this.#releases.delete(release);
      if (await this.#tryRelease(release)) {
        this.#unconfirmed.end();
        delayMs = FIRST_RETRY_MS;
      } else {
        this.#releases.push(release);
        await pause(release.ownedKey.clock, delayMs, { background: true, signal: this.#closeController.signal });
        delayMs = Math.min(delayMs * 2, MAX_RETRY_MS);
      }
    }
    this.#workerCount -= 1;
  }

  #leaseEndOf({ clock, ttlMs }: OwnedKey): number {
    return hasSessions(this.store) ? Infinity : clock.now() + ttlMs;
  }

  async #tryRelease({ ownedKey: { key, owner, clock }, leaseEndsAt }: UnconfirmedRelease): Promise<boolean> {
    if (this.#hasGivenUp || clock.now() >= leaseEndsAt) return true;
    try {
      await this.store.release(key, owner);
      return true;
    } catch {
      this.#hasGivenUp = this.#closeController.signal.aborted;
      return this.#hasGivenUp;
    }
  }
}
