import { WaitGroup } from '../kit/wait-group.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../time/linked-queue.js';
import { NotSentError } from '../contract/errors.js';
import { hasSessions } from './lease.js';
import type { ReleaseInBackground, OwnedKey } from './owned-key.js';
import { pause } from '../time/timers.js';

/** Maximum number of releases under way. A restart of the server may leave thousands of releases to repeat. */
const MAX_CONCURRENT_RELEASES = 50;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

class UnconfirmedRelease implements Linked<UnconfirmedRelease> {
  previous: UnconfirmedRelease | undefined;
  next: UnconfirmedRelease | undefined;
  queue: object | undefined;

  constructor(
    readonly ownedKey: OwnedKey,
    /** Time at which the key is free even without a release. `Infinity`: the lease ends with its session only. */
    readonly leaseEndsAt: number,
  ) {}
}

/** Repeats releases in the background until the store confirms them, or until the leases have expired. */
export class CleanUps {
  readonly #releaseQueue = new LinkedQueue<UnconfirmedRelease>();
  readonly #unconfirmedReleases = new WaitGroup();
  readonly #closeController = new AbortController();
  #workerCount = 0;
  /** Whether an attempt has failed after `close`, so that no further attempt is made. */
  #hasGivenUp = false;

  constructor(private readonly store: Pick<LeaseStore, 'release' | 'traits'>) {}

  readonly add: ReleaseInBackground = (ownedKey, lastAttempt) => {
    this.#unconfirmedReleases.begin();
    const enqueue = (): void => {
      this.#releaseQueue.push(new UnconfirmedRelease(ownedKey, this.#leaseEndOf(ownedKey)));
      if (this.#workerCount < MAX_CONCURRENT_RELEASES) void this.#runWorker();
    };
    if (!lastAttempt) return enqueue();
    lastAttempt.then(enqueue, (error: unknown) =>
      error instanceof NotSentError ? this.#unconfirmedReleases.end() : enqueue(),
    );
  };

  /** Tries each release once more. Resolves when all are confirmed, or when one has failed. */
  async close(): Promise<void> {
    this.#closeController.abort();
    await this.#unconfirmedReleases.waitUntilIdle();
  }

  async #runWorker(): Promise<void> {
    this.#workerCount += 1;
    let delayMs = FIRST_RETRY_MS;
    for (let release = this.#releaseQueue.first; release; release = this.#releaseQueue.first) {
      this.#releaseQueue.delete(release);
      if (await this.#releaseOrGiveUp(release)) {
        this.#unconfirmedReleases.end();
        delayMs = FIRST_RETRY_MS;
      } else {
        this.#releaseQueue.push(release);
        await pause(release.ownedKey.clock, delayMs, { background: true, signal: this.#closeController.signal });
        delayMs = Math.min(delayMs * 2, MAX_RETRY_MS);
      }
    }
    this.#workerCount -= 1;
  }

  #leaseEndOf({ clock, ttlMs }: OwnedKey): number {
    return hasSessions(this.store) ? Infinity : clock.now() + ttlMs;
  }

  /** Returns whether to stop the attempts: after a success, after the lease's end, or after giving up. */
  async #releaseOrGiveUp({ ownedKey: { key, owner, clock }, leaseEndsAt }: UnconfirmedRelease): Promise<boolean> {
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
