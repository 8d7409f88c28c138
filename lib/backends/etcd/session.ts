import { type Clock, Semaphore, systemClock, type Timer, getEndOfTrust } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import type { EtcdLockNames } from './lock-names.js';
import { METHOD } from './transport/messages.js';
import { encode } from './transport/protobuf.js';

/** Maximum number of operations in a transaction, by etcd's default. */
const MAX_TRANSACTION_STEPS = 128;
/**
 * Maximum number of concurrent readings of one heartbeat. With hundreds of them the last ones are late, and each has
 * its own time-out.
 */
const MAX_CONCURRENT_READINGS = 8;

interface KeyCheck {
  readonly name: string;
  readonly createdAt: bigint;
  readonly resolve: (exists: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lease on etcd: all entries of this process end with it. It is renewed at a third of its TTL. It is trusted, by this
 * process's clock, from the time when the last confirmed heartbeat was sent.
 */
export class EtcdSession {
  /**
   * Revision of the session's own key, by which etcd detects late requests of this process: see `QueueEntry`. 0 without
   * that key.
   */
  sessionKeyRevision = 0n;
  readonly #endController = new AbortController();
  readonly #takenNames = new Set<string>();
  #keyChecks: KeyCheck[] = [];
  #isSendingHeartbeat = false;
  #heartbeatTimer: Timer | undefined;
  readonly #stopHealthListener: () => void;
  readonly #readingLimit = new Semaphore(MAX_CONCURRENT_READINGS);

  private constructor(
    private readonly client: EtcdClient,
    private readonly names: EtcdLockNames,
    readonly lease: bigint,
    /** TTL that the server granted, which may have a minimum. */
    readonly ttlMs: number,
    /** Time at which the last heartbeat that the server confirmed was sent. */
    public heartbeatSentAt: number,
    private readonly clock: Clock,
  ) {
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
    const reply = await client.call(METHOD.grant, encode([1, Math.ceil(ttlMs / 1_000)]));
    return new EtcdSession(client, names, reply.integer(2), Number(reply.integer(3)) * 1_000, sentAt, clock);
  }

  /** Signal that aborts when the server answers that the lease is gone, and all its keys with it. */
  get endSignal(): AbortSignal {
    return this.#endController.signal;
  }

  /** Whether the lease has ended, or may not be trusted any more. */
  get isOver(): boolean {
    return this.endSignal.aborted || this.clock.now() >= getEndOfTrust(this.heartbeatSentAt, this.ttlMs);
  }

  /**
   * Returns a name in the queue of `key` that no other entry has. Names are used again: etcd searches the oldest entry
   * through every name that a range had since the last compaction.
   */
  takeName(key: string, share: string): string {
    let number = 0;
    let name = this.names.entryName(key, number, this.lease, share);
    while (this.#takenNames.has(name)) name = this.names.entryName(key, ++number, this.lease, share);
    this.#takenNames.add(name);
    return name;
  }

  /**
   * Makes a name available again. Call it only when no late request can affect the name. Otherwise the name stays
   * taken, which costs about 100 bytes.
   */
  freeName(name: string): void {
    this.#takenNames.delete(name);
  }

  /** Ends the session, because the server knows no such lease. */
  end(): void {
    this.#endController.abort();
    this.stop();
  }

  stop(): void {
    this.#heartbeatTimer?.cancel();
    this.#stopHealthListener();
    for (const { resolve, reject } of this.#keyChecks.splice(0)) {
      if (this.endSignal.aborted) resolve(false);
      // The session has ended by the clock or by `stop`: the server has not answered that a key is gone.
      else reject(new Error('the session is over'));
    }
  }

  async revoke(): Promise<void> {
    this.stop();
    await this.client.call(METHOD.revoke, encode([1, this.lease]));
  }

  /**
   * Returns whether `name` is still the key that was created at this revision, in a session with its whole TTL from
   * this call on.
   */
  confirmKey(name: string, createdAt: bigint): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#keyChecks.push({ name, createdAt, resolve, reject });
      // One heartbeat answers all checks of one event loop iteration.
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
      for (const { name, createdAt, resolve } of keyChecks)
        resolve(!this.endSignal.aborted && reading.revisions.get(name) === createdAt);
    } catch (error) {
      this.#scheduleHeartbeat(this.ttlMs / 20);
      for (const { reject } of keyChecks) reject(error);
    } finally {
      this.#isSendingHeartbeat = false;
      if (this.#keyChecks.length > 0) void this.#sendHeartbeat();
    }
  }

  /**
   * Reads from a member that is connected to a quorum, and returns its term. A leader that was frozen answers
   * keep-alives although a new leader's clock expires the lease (https://github.com/etcd-io/etcd/issues/15247). A
   * reading needs a quorum: its member knows of every leader elected before. A leader elected later gives every lease
   * its whole TTL again. The TTL counts from the reading, and the keep-alive must come from a member that knows the
   * same term.
   */
  async #readFromQuorum(keyChecks: readonly KeyCheck[]): Promise<{ term: bigint; revisions: Map<string, bigint> }> {
    const names = keyChecks.length > 0 ? keyChecks.map(({ name }) => name) : [this.names.sessionName(this.lease)];
    const readings = [];
    for (let from = 0; from < names.length; from += MAX_TRANSACTION_STEPS) {
      readings.push(this.#readingLimit.run(() => this.client.read(names.slice(from, from + MAX_TRANSACTION_STEPS))));
    }
    const outcomes = await Promise.all(readings);
    const revisions = new Map<string, bigint>();
    for (const kv of outcomes.flatMap(({ results }) => results)) if (kv) revisions.set(kv.key, kv.createdAt);
    return { term: outcomes.map(({ term }) => term).reduce((a, b) => (a > b ? a : b)), revisions };
  }

  async #keepAlive(term: bigint): Promise<void> {
    const reply = await this.client.call(METHOD.keepAlive, encode([1, this.lease]));
    if ((reply.message(1)?.integer(4) ?? 0n) < term)
      throw new Error('a member answered that does not know of the leader');
    if (reply.integer(3) <= 0n) this.end();
  }
}
