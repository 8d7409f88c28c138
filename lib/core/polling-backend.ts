import { CleanUps } from './clean-ups.js';
import { Contender } from './contender.js';
import type { LeaseStore } from './lease-store.js';
import type { AcquireRequest, Guarantee, HealthSource, Lease, LockBackend, TtlLimits } from './lock-backend.js';
import { systemRandom } from './system-random.js';

/** How a waiter asks again where the store cannot wake it, or did not. */
export interface PollingOptions {
  /** The pause between two questions, give or take half, at most what is left of the holder's lease. @default 50, or 30_000 where the store wakes its waiters */
  pollMs?: number;
  /** How long failures in a row are asked again, with the same owner, before `LockBackendError`. @default 2_000 */
  patienceMs?: number;
  /** For tests: where pauses get their jitter from, numbers from 0 to below 1. @default cryptographically random */
  random?: () => number;
}

/** To how much many who ask at the same time may lengthen the pause of each. */
const LONGEST_SHARED_POLL_MS = 5_000;

const CLOSED =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/** Makes a `LockBackend` of a `LeaseStore`: waiting, lost replies, late replies and giving up, written once. */
export class PollingBackend implements LockBackend {
  readonly name: string;
  readonly ttlLimits?: TtlLimits;
  readonly endsWithConnection?: boolean;
  readonly start?: () => Promise<void>;
  readonly isHeldBy?: (key: string, owner: string) => Promise<boolean>;
  readonly health?: HealthSource;
  readonly #patience: Required<PollingOptions>;
  readonly #cleanUps: CleanUps;
  #contenders = 0;
  #closed = false;

  constructor(
    private readonly store: LeaseStore,
    options: PollingOptions = {},
  ) {
    this.#cleanUps = new CleanUps(store);
    this.name = store.name;
    if (store.ttlLimits) this.ttlLimits = store.ttlLimits;
    if (store.endsWith === 'connection') this.endsWithConnection = true;
    const { pollMs = store.watch ? 30_000 : 50, patienceMs = 2_000, random = systemRandom } = options;
    const sharedPollMs = (): number =>
      Math.min(LONGEST_SHARED_POLL_MS, this.#contenders * (store.pollMsPerWaiter ?? 0));
    this.#patience = {
      patienceMs,
      random,
      get pollMs() {
        return Math.max(pollMs, sharedPollMs());
      },
    };
    if (store.start) this.start = store.start.bind(store);
    if (store.isHeldBy) this.isHeldBy = store.isHeldBy.bind(store);
    if (store.health) this.health = store.health;
  }

  get guarantee(): Guarantee {
    return this.store.guarantee;
  }

  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    if (this.#closed) return Promise.reject(new Error(CLOSED));
    this.#contenders += 1;
    const contender = new Contender(this.store, key, request, this.#patience, this.#cleanUps.add);
    return contender.run().finally(() => (this.#contenders -= 1));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#cleanUps.close();
    await this.store.close();
  }
}
