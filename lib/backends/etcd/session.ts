import { type Clock, isLockError, Semaphore, systemClock, type Timer, getEndOfTrust } from '../../core/index.js';
import { EtcdError } from './error.js';
import type { EtcdClient } from './transport/client.js';
import type { EtcdLockNames } from './lock-names.js';
import { METHOD, type Step } from './transport/messages.js';
import { encode } from './transport/protobuf.js';

/** Maximum number of operations in a transaction, by etcd's default. */
const MAX_TRANSACTION_STEPS = 128;
/** Maximum number of concurrent readings of one heartbeat. With hundreds, the last ones exceed their own time-outs. */
const MAX_CONCURRENT_READINGS = 8;

interface KeyCheck {
  readonly name: string;
  readonly createRevision: bigint;
  readonly resolve: (exists: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** One lease of etcd, which heartbeats keep alive, and the names of this process's entries under that lease. */
export class EtcdSession {
  /**
   * Revision of the last known write of the session's own key, or 0 while that key does not exist. Entries are created
   * only if the key still has this revision: see `QueueEntry`.
   */
  sessionKeyRevision = 0n;
  readonly #endController = new AbortController();
  readonly #takenNames = new Set<string>();
  /** Number of names that were passed on to other processes. New names contain this number, and so are different. */
  #retiredCount = 0;
  #keyChecks: KeyCheck[] = [];
  #isSendingHeartbeat = false;
  #isStopped = false;
  #heartbeatTimer: Timer | undefined;
  readonly #stopHealthListener: () => void;
  readonly #readingLimit = new Semaphore(MAX_CONCURRENT_READINGS);

  private constructor(
    private readonly client: EtcdClient,
    private readonly names: EtcdLockNames,
    readonly lease: bigint,
    /** TTL that the server granted: it may be longer than requested. */
    readonly ttlMs: number,
    /** Send time of the last heartbeat that the server confirmed. */
    public heartbeatSentAt: number,
    private readonly clock: Clock,
  ) {
    // After a failure the client turns to the next member. An early heartbeat leaves time to try several members.
    this.#stopHealthListener = client.health.onChange(
      ({ status }) => status === 'down' && this.#scheduleHeartbeat(this.ttlMs / 50),
    );
    this.#scheduleHeartbeat(heartbeatSentAt + ttlMs / 3 - clock.now());
  }

  static async open(
    client: EtcdClient,
    names: EtcdLockNames,
    ttlMs: number,
    clock = systemClock,
  ): Promise<EtcdSession> {
    const sentAt = clock.now();
    const { lease, grantedTtlMs } = await grantLease(client, ttlMs);
    return new EtcdSession(client, names, lease, grantedTtlMs, sentAt, clock);
  }

  /** Signal that aborts when the lease is gone with all its keys, or a member of another cluster has answered. */
  get endSignal(): AbortSignal {
    return this.#endController.signal;
  }

  /** Whether the lease is gone, or was not confirmed for so long that it is no longer trusted. */
  get isOver(): boolean {
    return this.#isStopped || this.clock.now() >= getEndOfTrust(this.heartbeatSentAt, this.ttlMs);
  }

  /**
   * Returns a name that no entry has. Reuses freed names, because etcd's search for the oldest entry visits every name
   * that was used since the last compaction.
   */
  takeName(key: string, claimSuffix: string): string {
    const retiredCountText = this.#retiredCount === 0 ? '' : `${this.#retiredCount}-`;
    for (let number = 0; ; number += 1) {
      const name = this.names.entryName(key, `${retiredCountText}${number}`, this.lease, claimSuffix);
      if (this.#takenNames.has(name)) continue;
      this.#takenNames.add(name);
      return name;
    }
  }

  /**
   * Lets `takeName` return the name again. Must be called only when no late request can affect the name. A name that
   * is never freed costs about 100 bytes of memory.
   */
  freeName(name: string): void {
    this.#takenNames.delete(name);
  }

  /** Step that writes the session's own key, so that earlier requests to create entries have no effect. */
  get sessionKeyStep(): Step {
    return { put: this.names.sessionKeyName(this.lease), value: '', lease: this.lease };
  }

  /** Must be called with the revision of a transaction that had `sessionKeyStep`. */
  recordSessionKeyRevision(revision: bigint): void {
    if (revision > this.sessionKeyRevision) this.sessionKeyRevision = revision;
  }

  /** Frees the memory of a name that was passed on to another process. `takeName` never returns that name again. */
  retireName(name: string): void {
    if (this.#takenNames.delete(name)) this.#retiredCount += 1;
  }

  /**
   * Ends the session for good. Must be called only when the server answered that the lease is gone, or when the client
   * refuses to send requests.
   */
  end(): void {
    this.#endController.abort();
    this.stop();
  }

  /** Ends the session if `error` says that its lease is gone. */
  endIfLeaseMissing(error: unknown): void {
    if (error instanceof EtcdError && error.code === 'NOT_FOUND') this.end();
  }

  /**
   * Stops the heartbeats for good and settles waiting key checks. The server keeps the lease until it expires or is
   * revoked.
   */
  stop(): void {
    this.#isStopped = true;
    this.#heartbeatTimer?.cancel();
    this.#stopHealthListener();
    for (const { resolve, reject } of this.#keyChecks.splice(0)) {
      if (this.endSignal.aborted) resolve(false);
      // The keys may still exist.
      else reject(new Error('the session is over'));
    }
  }

  async revoke(): Promise<void> {
    this.stop();
    await revokeLease(this.client, this.lease);
  }

  /**
   * Resolves to whether the key that was created at this revision still exists. If so, its lease has been renewed for a
   * whole TTL from this call on.
   */
  confirmKey(name: string, createRevision: bigint): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#keyChecks.push({ name, createRevision, resolve, reject });
      if (this.#keyChecks.length === 1) queueMicrotask(() => void this.#sendHeartbeat());
    });
  }

  #scheduleHeartbeat(delayMs: number): void {
    if (this.endSignal.aborted) return;
    this.#heartbeatTimer?.cancel();
    this.#heartbeatTimer = this.clock.schedule(delayMs, () => void this.#sendHeartbeat(), { background: true });
  }

  async #sendHeartbeat(): Promise<void> {
    if (this.#isSendingHeartbeat) return;
    if (this.isOver) return this.stop();
    this.#isSendingHeartbeat = true;
    const keyChecks = this.#keyChecks;
    this.#keyChecks = [];
    const sentAt = this.clock.now();
    try {
      const reading = await this.#readFromQuorum(keyChecks);
      await this.#keepAlive(reading.term);
      this.heartbeatSentAt = sentAt;
      this.#scheduleHeartbeat(sentAt + this.ttlMs / 3 - this.clock.now());
      for (const { name, createRevision, resolve } of keyChecks)
        resolve(!this.endSignal.aborted && reading.createRevisions.get(name) === createRevision);
    } catch (error) {
      // The endpoints are of different clusters: another process may hold the same keys on the other cluster.
      if (isLockError(error, 'LOCK_CONFIGURATION')) this.end();
      this.#scheduleHeartbeat(this.ttlMs / 20);
      for (const { reject } of keyChecks) reject(error);
    } finally {
      this.#isSendingHeartbeat = false;
      if (this.#keyChecks.length > 0) void this.#sendHeartbeat();
    }
  }

  /**
   * Reads from a member that is connected to a quorum, and returns the term that this member knows. A leader that was
   * frozen answers keep-alives although a new leader's clock expires the lease
   * (https://github.com/etcd-io/etcd/issues/15247).
   *
   * A member that answers a quorum reading knows of every leader that was elected before the reading. A leader that is
   * elected later gives every lease its whole TTL again. The TTL of this lease therefore counts from the reading. The
   * keep-alive must be answered by a member that knows this term or a later one.
   */
  async #readFromQuorum(
    keyChecks: readonly KeyCheck[],
  ): Promise<{ term: bigint; createRevisions: Map<string, bigint> }> {
    const names = keyChecks.length > 0 ? keyChecks.map(({ name }) => name) : [this.names.sessionKeyName(this.lease)];
    const readings = [];
    for (let from = 0; from < names.length; from += MAX_TRANSACTION_STEPS) {
      readings.push(this.#readingLimit.run(() => this.client.read(names.slice(from, from + MAX_TRANSACTION_STEPS))));
    }
    const outcomes = await Promise.all(readings);
    const createRevisions = new Map<string, bigint>();
    for (const entry of outcomes.flatMap(({ firstKeyValues }) => firstKeyValues))
      if (entry) createRevisions.set(entry.key, entry.createRevision);
    return { term: outcomes.map(({ term }) => term).reduce((a, b) => (a > b ? a : b)), createRevisions };
  }

  /** Renews the lease, or ends the session if the server has no such lease: field 3, the TTL, is then 0. */
  async #keepAlive(minTerm: bigint): Promise<void> {
    const reply = await this.client.call(METHOD.keepAlive, encode([1, this.lease]));
    if ((reply.message(1)?.integer(4) ?? 0n) < minTerm)
      throw new Error('a member answered that does not know of the leader');
    if (reply.integer(3) <= 0n) this.end();
  }
}

/** Requests a lease from the server, which may grant a longer TTL than `ttlMs`. */
export async function grantLease(
  client: EtcdClient,
  ttlMs: number,
): Promise<{ readonly lease: bigint; readonly grantedTtlMs: number }> {
  const reply = await client.call(METHOD.grant, encode([1, Math.ceil(ttlMs / 1_000)]));
  return { lease: reply.integer(2), grantedTtlMs: Number(reply.integer(3)) * 1_000 };
}

/** Revokes a lease that has no keys. The server would otherwise keep the lease until its TTL ends. */
export function revokeInBackground(client: EtcdClient, lease: bigint): void {
  revokeLease(client, lease).catch(() => undefined);
}

async function revokeLease(client: EtcdClient, lease: bigint): Promise<void> {
  await client.call(METHOD.revoke, encode([1, lease]));
}
