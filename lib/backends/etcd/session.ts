import { type Clock, Semaphore, systemClock, type Timer, trustedUntil } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import type { EtcdLockNames } from './lock-names.js';
import { METHOD } from './transport/messages.js';
import { encode } from './transport/protobuf.js';

/** A transaction may have 128 steps, unless the server is told otherwise. */
const STEPS_AT_ONCE = 128;
/** Readings of one heartbeat under way. With hundreds of them the last ones are late, and each counts its own time-out. */
const READINGS_AT_ONCE = 8;

interface Question {
  readonly name: string;
  readonly createdAt: bigint;
  readonly resolve: (there: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A lease of etcd's: all that this process holds or waits for ends with it. It is kept alive at a third of its TTL, and
 * trusted by this process's clock from when the last confirmed heartbeat was sent.
 */
export class EtcdSession {
  /** Tells late requests of this process: see `QueueEntry`. The revision of the session's own key; 0 without one. */
  epoch = 0n;
  readonly #gone = new AbortController();
  readonly #entries = new Set<string>();
  #questions: Question[] = [];
  #beating = false;
  #nextBeat: Timer | undefined;
  readonly #forgetHealth: () => void;
  readonly #window = new Semaphore(READINGS_AT_ONCE);

  private constructor(
    private readonly client: EtcdClient,
    private readonly names: EtcdLockNames,
    readonly lease: bigint,
    /** The server's word: it may have a minimum. */
    readonly ttlMs: number,
    /** When the last heartbeat that the server confirmed was sent. */
    public sentAt: number,
    private readonly clock: Clock,
  ) {
    this.#forgetHealth = client.health.onChange(({ status }) => status === 'down' && this.#beatIn(this.ttlMs / 50));
    this.#beatIn(sentAt + ttlMs / 3 - clock.now());
  }

  static async grant(
    client: EtcdClient,
    names: EtcdLockNames,
    ttlMs: number,
    clock = systemClock,
  ): Promise<EtcdSession> {
    const sentAt = clock.now();
    const reply = await client.call(METHOD.grant, encode([1, Math.ceil(ttlMs / 1_000)]));
    return new EtcdSession(client, names, reply.integer(2), Number(reply.integer(3)) * 1_000, sentAt, clock);
  }

  /** Aborts when the server says that the lease is gone, and all its keys with it. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Nothing of it may be trusted any more. */
  get over(): boolean {
    return this.gone.aborted || this.clock.now() >= trustedUntil(this.sentAt, this.ttlMs);
  }

  /**
   * A name in the queue of `key` that no other entry has. Names are used again, because etcd looks for the oldest entry
   * through every name that a range had since the last compaction.
   */
  takeName(key: string, share: string): string {
    let number = 0;
    let name = this.names.entry(key, number, this.lease, share);
    while (this.#entries.has(name)) name = this.names.entry(key, ++number, this.lease, share);
    this.#entries.add(name);
    return name;
  }

  /** Only for a name with which nothing can happen any more. Otherwise it stays taken: about 100 bytes. */
  freeName(name: string): void {
    this.#entries.delete(name);
  }

  /** The server knows no such lease. */
  end(): void {
    this.#gone.abort();
    this.stop();
  }

  stop(): void {
    this.#nextBeat?.cancel();
    this.#forgetHealth();
    for (const { resolve, reject } of this.#questions.splice(0)) {
      if (this.gone.aborted) resolve(false);
      // It is over by the clock alone, or by `stop`: the server has not said that anything is gone.
      else reject(new Error('the session is over'));
    }
  }

  async revoke(): Promise<void> {
    this.stop();
    await this.client.call(METHOD.revoke, encode([1, this.lease]));
  }

  /** Whether `name` is still the key that was created then, in a session with its whole TTL from this call on. */
  isThere(name: string, createdAt: bigint): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#questions.push({ name, createdAt, resolve, reject });
      // One heartbeat answers all questions of one tick.
      if (this.#questions.length === 1) queueMicrotask(() => void this.#beat());
    });
  }

  #beatIn(delayMs: number): void {
    if (this.gone.aborted) return;
    this.#nextBeat?.cancel();
    this.#nextBeat = this.clock.schedule(delayMs, () => void this.#beat(), { background: true });
  }

  async #beat(): Promise<void> {
    if (this.#beating) return;
    if (this.over) return this.stop();
    this.#beating = true;
    const questions = this.#questions;
    this.#questions = [];
    const sentAt = this.clock.now();
    try {
      const found = await this.#hearFromMajority(questions);
      await this.#keepAlive(found.term);
      this.sentAt = sentAt;
      this.#beatIn(sentAt + this.ttlMs / 3 - this.clock.now());
      for (const { name, createdAt, resolve } of questions)
        resolve(!this.gone.aborted && found.created.get(name) === createdAt);
    } catch (error) {
      this.#beatIn(this.ttlMs / 20);
      for (const { reject } of questions) reject(error);
    } finally {
      this.#beating = false;
      if (this.#questions.length > 0) void this.#beat();
    }
  }

  /**
   * A leader that was frozen answers keep-alives although a new leader's clock ends the lease
   * (https://github.com/etcd-io/etcd/issues/15247). A reading needs a majority: its member knows of every leader that
   * was elected before. A leader that is elected later gives every lease its whole TTL again. The time counts from the
   * reading, and the keep-alive must come from a member that knows as much.
   */
  async #hearFromMajority(questions: readonly Question[]): Promise<{ term: bigint; created: Map<string, bigint> }> {
    const names = questions.length > 0 ? questions.map(({ name }) => name) : [this.names.session(this.lease)];
    const readings = [];
    for (let from = 0; from < names.length; from += STEPS_AT_ONCE) {
      readings.push(this.#window.run(() => this.client.read(names.slice(from, from + STEPS_AT_ONCE))));
    }
    const outcomes = await Promise.all(readings);
    const created = new Map<string, bigint>();
    for (const kv of outcomes.flatMap(({ found }) => found)) if (kv) created.set(kv.key, kv.createdAt);
    return { term: outcomes.map(({ term }) => term).reduce((a, b) => (a > b ? a : b)), created };
  }

  async #keepAlive(term: bigint): Promise<void> {
    const reply = await this.client.call(METHOD.keepAlive, encode([1, this.lease]));
    if ((reply.message(1)?.integer(4) ?? 0n) < term)
      throw new Error('a member answered that does not know of the leader');
    if (reply.integer(3) <= 0n) this.end();
  }
}
