import {
  type AcquireRequest,
  type HealthSource,
  type Clock,
  type Lease,
  type LockBackend,
  PollingBackend,
  systemClock,
  type Timer,
} from '../../core/index.js';
import { EtcdLeaseStore } from './etcd-lease-store.js';
import type { ResolvedEtcdOptions } from './etcd-options.js';
import type { EtcdSession } from './etcd-session.js';

/**
 * Give or take half. Should a wake-up be missing: nobody hears from a connection that the network has forgotten, and looking
 * shows that, too.
 */
const LOOK_AGAIN_MS = 3_000;

/** Waits as for any store, and passes on what the session knows: how long it is trusted, and that the server ended it. */
export class EtcdBackend implements LockBackend {
  readonly name: string;
  readonly guarantee: LockBackend['guarantee'];
  readonly #store: EtcdLeaseStore;
  readonly #polling: PollingBackend;

  constructor(options: ResolvedEtcdOptions) {
    this.#store = new EtcdLeaseStore(options);
    this.#polling = new PollingBackend(this.#store, { pollMs: LOOK_AGAIN_MS, patienceMs: options.patienceMs });
    this.name = this.#store.name;
    this.guarantee = this.#store.guarantee;
  }

  async acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    // What is left of a place does not end with a lease of its own, and an answer is late when the session is over.
    const lease = await this.#polling.acquire(key, { ...request, ttlMs: Infinity });
    const session = this.#store.sessionOf(request.owner);
    return lease && session ? new SessionLease(lease, session, request.deadline.clock) : lease;
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.#store.isHeldBy(key, owner);
  }

  start(): Promise<void> {
    return this.#store.start();
  }

  close(): Promise<void> {
    return this.#polling.close();
  }

  get health(): HealthSource {
    return this.#store.health;
  }
}

/** The session outlives it: a lease that is not renewed is given back at its end. */
class SessionLease implements Lease {
  readonly fencingToken: bigint;
  readonly queued: boolean;
  readonly ttlMs: number;
  readonly sentAt: number;
  readonly revoked: AbortSignal;
  #renewedAt: number;
  #end: Timer | undefined;

  constructor(
    private readonly lease: Lease,
    session: EtcdSession,
    private readonly clock: Clock = systemClock,
  ) {
    this.fencingToken = lease.fencingToken;
    this.queued = lease.queued === true;
    this.ttlMs = session.ttlMs;
    this.sentAt = session.sentAt;
    this.revoked = session.gone;
    this.#renewedAt = this.sentAt;
    this.#watchEnd();
  }

  async renew(): Promise<boolean> {
    const askedAt = this.clock.now();
    const ours = await this.lease.renew();
    if (ours) this.#renewedAt = askedAt;
    return ours;
  }

  async release(): Promise<void> {
    this.#end?.cancel();
    await this.lease.release();
  }

  #watchEnd(): void {
    const leftMs = this.#renewedAt + this.ttlMs - this.clock.now();
    if (leftMs <= 0) this.release().catch(() => undefined);
    else this.#end = this.clock.schedule(leftMs, () => this.#watchEnd(), { background: true });
  }
}
