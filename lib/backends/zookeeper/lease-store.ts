import {
  type Asker,
  type Guarantee,
  type HealthSource,
  type Holder,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  NotSentError,
  SessionEntries,
  systemClock,
  trustedUntil,
  type StoreTraits,
} from '../../core/index.js';
import { HeldNode } from './held-node.js';
import { keyInName } from './node-name.js';
import { childrenOf, type OwnNode } from './nodes.js';
import type { QueueEntry, Wake } from './queue-entry.js';
import { SequentialEntry } from './sequential-entry.js';
import { EnsembleClient } from './ensemble-client.js';
import { EphemeralEntry } from './simple/ephemeral-entry.js';
import { ConnectionLostError, isFinal, SessionExpiredError } from './error.js';
import type { ResolvedOptions } from './options.js';
import type { ZooKeeperSession } from './session.js';

/** How many keys are looked at together. */
const KEYS_A_PAGE = 100;

/** All claims to a key are listed together. */
const MOST_IN_LINE = 1_000;

const ENTRIES = { sequential: SequentialEntry, simple: EphemeralEntry };

interface Contender {
  readonly key: string;
  readonly owner: string;
  readonly metadata: HolderMetadata;
  readonly asker: Asker | undefined;
  readonly wake: Wake;
}

/** The queue entries of one process, all in one session. */
export class ZooKeeperLeaseStore implements LeaseStore {
  readonly name = 'zookeeper';
  readonly guarantee: Guarantee;
  readonly traits: StoreTraits;
  readonly #ensemble: EnsembleClient;
  readonly #entries = new SessionEntries<ZooKeeperSession, QueueEntry>();
  /** Those of waiters that were told that no server can be reached. */
  readonly #wakesOnceUp = new Set<() => void>();

  constructor(private readonly options: ResolvedOptions) {
    this.guarantee = options.servers.length > 1 ? 'consensus' : 'durable';
    this.traits = { endsWith: 'session', ...(options.mode === 'sequential' && { maxPermits: MOST_IN_LINE }) };
    this.#ensemble = new EnsembleClient(options);
    this.health.onChange(({ status }) => status === 'up' && this.#onUp());
  }

  get health(): HealthSource {
    return this.#ensemble.health;
  }

  async start(): Promise<void> {
    await this.#ensemble.connected();
  }

  async tryAcquire(
    key: string,
    owner: string,
    _ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const wake = this.#entries.wakeUpOf(owner);
    const contender = { key, owner, metadata, asker, wake };
    try {
      return await (wake ? this.#attempt(contender) : this.#attemptTwice(contender));
    } catch (error) {
      if (!isFinal(error)) throw error;
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: error });
    }
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    return (await this.#entries.get(owner)?.held?.renew()) ?? false;
  }

  /** Two releases at once are one. In mode `simple` the second could delete the next holder's node. */
  async release(_key: string, owner: string): Promise<boolean> {
    const entry = this.#entries.get(owner);
    if (!entry) return false;
    entry.releasing ??= this.#release(owner, entry);
    return entry.releasing;
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    const unwatch = this.#entries.watch(owner, wake);
    return () => {
      this.#wakesOnceUp.delete(wake);
      unwatch();
    };
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { base, connection, entries } = await this.#synced();
    return entries.holds(connection, base, key, owner);
  }

  async look(key: string): Promise<LeaseState> {
    const { base, connection, entries } = await this.#synced();
    return entries.look(connection, base, key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const { base, connection, entries } = await this.#synced();
    return entries.evict(connection, base, key, owner);
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    const { base, connection, entries } = await this.#synced();
    const names = await childrenOf(connection, base);
    const keys = names.flatMap((name) => keyInName(name) ?? []).filter((key) => key.startsWith(prefix));
    for (let from = 0; from < keys.length; from += KEYS_A_PAGE) {
      const page = keys.slice(from, from + KEYS_A_PAGE);
      // The server keeps the node of a free key for a while.
      const held = await Promise.all(page.map((key) => entries.isHeld(connection, base, key)));
      yield page.filter((_, index) => held[index]);
    }
  }

  close(): Promise<void> {
    return this.#ensemble.close();
  }

  /** For a reading. A follower may lag behind its leader, so it syncs first. */
  async #synced() {
    const { base, mode } = this.options;
    const { connection } = await this.#ensemble.connected();
    await connection.ask('sync', { path: base });
    return { base, connection, entries: ENTRIES[mode] };
  }

  /** A caller that does not wait looks once more when the first answer is lost. */
  async #attemptTwice(contender: Contender): Promise<LeaseAttempt> {
    try {
      return await this.#attempt(contender);
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || !this.#entries.get(contender.owner)) throw error;
      return this.#attempt(contender);
    }
  }

  async #attempt(contender: Contender): Promise<LeaseAttempt> {
    const { owner, asker, wake } = contender;
    const session = await this.#connected(wake);
    const mayBeThere = this.#entries.get(owner) !== undefined;
    if (asker?.onSend() === false) throw mayBeThere ? new Error('nobody waits for it any more') : new NotSentError();
    const entry = this.#entries.getOrCreate(owner, session, () => this.#createEntry(contender, session));
    for (;;) {
      const askedAt = systemClock.now();
      const position = await entry.look(wake);
      if (!position.node) return this.#refused(contender, position.holder);
      const sentAt = session.trustedFrom(askedAt);
      const isTrusted = systemClock.now() < trustedUntil(sentAt, session.times.trustMs);
      if (isTrusted) return this.#granted(entry, position.node, sentAt);
      await session.prove();
    }
  }

  /** A waiter is told at once that no server can be reached. It is woken when one can. */
  #connected(wake: Wake): Promise<ZooKeeperSession> {
    const { failure } = this.#ensemble;
    if (!wake || !failure) return this.#ensemble.connected();
    this.#wakesOnceUp.add(wake);
    return Promise.reject(failure);
  }

  #onUp(): void {
    const wakes = [...this.#wakesOnceUp];
    this.#wakesOnceUp.clear();
    for (const wake of wakes) wake();
  }

  #createEntry({ key, owner, metadata }: Contender, session: ZooKeeperSession): QueueEntry {
    const { base, acl, mode } = this.options;
    return new ENTRIES[mode](session, { key, owner, metadata, base, acl });
  }

  #granted(entry: QueueEntry, node: OwnNode, sentAt: number): LeaseAttempt {
    const { session } = entry;
    if (session.ended.aborted) throw new SessionExpiredError();
    if (entry.held?.node.czxid !== node.czxid) {
      entry.held?.forget();
      entry.held = new HeldNode(session, node);
    }
    return {
      acquired: true,
      fencingToken: node.czxid,
      ttlMs: session.times.trustMs,
      sentAt,
      revoked: entry.held.revoked,
    };
  }

  /** A caller that does not wait leaves the queue. When that fails, the core does it later. */
  async #refused({ key, owner, wake }: Contender, holder: Holder | undefined): Promise<LeaseAttempt> {
    const refusal = { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) } as const;
    if (wake) return refusal;
    try {
      await this.release(key, owner);
      return refusal;
    } catch (error) {
      if (isFinal(error)) throw error;
      return { ...refusal, staysInLine: true };
    }
  }

  /** Whether the key was the owner's. All entries end with their session. */
  async #release(owner: string, entry: QueueEntry): Promise<boolean> {
    const { held } = entry;
    entry.unwatch();
    held?.forget();
    try {
      const released = !entry.session.ended.aborted && (await entry.release());
      this.#entries.delete(owner);
      return released && held !== undefined;
    } catch (error) {
      entry.releasing = undefined;
      if (isFinal(error)) this.#entries.delete(owner);
      throw error;
    }
  }
}
