import {
  type Asker,
  type Clock,
  type Guarantee,
  type HealthSource,
  type Holder,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockBackendError,
  NotSentError,
  systemClock,
  trustedUntil,
} from '../../core/index.js';
import { HeldNode } from './held-node.js';
import type { OwnNode } from './nodes.js';
import type { Place } from './queue-entry.js';
import { SequentialPlace } from './sequential-entry.js';
import { SessionKeeper } from './client-session.js';
import { SimplePlace } from './simple/ephemeral-entry.js';
import { ConnectionLostError, isFinal, SessionExpiredError } from './error.js';
import type { ResolvedOptions } from './options.js';
import type { ZooKeeperSession } from './session.js';

const PLACES = { sequential: SequentialPlace, simple: SimplePlace };

/** A caller that asks for a key. */
interface Contender {
  readonly key: string;
  readonly owner: string;
  readonly metadata: HolderMetadata;
  readonly asker: Asker | undefined;
  /** Present when the caller waits. */
  readonly wake: (() => void) | undefined;
}

/** An owner's node on the server, and the same as a lease when it has the key. */
interface Entry {
  readonly place: Place;
  held: HeldNode | undefined;
  leaving: Promise<boolean> | undefined;
}

/** The places of one process in the queues of its keys, all in one session. */
export class ZooKeeperLeaseStore implements LeaseStore {
  readonly name = 'zookeeper';
  readonly guarantee: Guarantee;
  readonly endsWith = 'session';
  readonly #options: ResolvedOptions;
  readonly #keeper: SessionKeeper;
  readonly #clock: Clock = systemClock;
  readonly #entries = new Map<string, Entry>();
  readonly #wakes = new Map<string, () => void>();
  /** Waiters that were told that no server can be reached. */
  readonly #wakesOnceUp = new Set<() => void>();

  constructor(options: ResolvedOptions) {
    this.#options = options;
    this.guarantee = options.servers.length > 1 ? 'consensus' : 'durable';
    this.#keeper = new SessionKeeper(options);
    this.health.onChange(({ status }) => status === 'up' && this.#onUp());
  }

  get health(): HealthSource {
    return this.#keeper.health;
  }

  /** Connects. */
  async start(): Promise<void> {
    await this.#keeper.connected();
  }

  async tryAcquire(
    key: string,
    owner: string,
    _ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const wake = this.#wakes.get(owner);
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
    entry.leaving ??= this.#leave(owner, entry);
    return entry.leaving;
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    this.#wakes.set(owner, wake);
    return () => {
      this.#wakes.delete(owner);
      this.#wakesOnceUp.delete(wake);
      this.#entries.get(owner)?.place.unwatch();
    };
  }

  /** A follower may lag behind its leader, so it syncs first, in the same write. */
  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { base, mode } = this.#options;
    const { connection } = await this.#keeper.connected();
    const synced = connection.ask('sync', { path: base });
    const [present] = await Promise.all([PLACES[mode].ownerOf(connection, base, key), synced]);
    return present === owner;
  }

  close(): Promise<void> {
    return this.#keeper.close();
  }

  /** A caller that does not wait looks once more when the first answer is lost. */
  async #attemptTwice(contender: Contender): Promise<LeaseAttempt> {
    try {
      return await this.#attempt(contender);
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || !this.#entries.has(contender.owner)) throw error;
      return this.#attempt(contender);
    }
  }

  async #attempt(contender: Contender): Promise<LeaseAttempt> {
    const { owner, asker, wake } = contender;
    const session = await this.#session(wake);
    const mayBeThere = this.#entries.has(owner);
    if (asker?.onSend() === false) throw mayBeThere ? new Error('nobody waits for it any more') : new NotSentError();
    const entry = this.#entryOf(contender, session);
    for (;;) {
      const askedAt = this.#clock.now();
      const standing = await entry.place.look(wake);
      if (!standing.node) return this.#refused(contender, standing.holder);
      const sentAt = session.trustedFrom(askedAt);
      const isTrusted = this.#clock.now() < trustedUntil(sentAt, session.times.trustMs);
      if (isTrusted) return this.#granted(entry, standing.node, sentAt);
      await session.prove();
    }
  }

  /** Once it is known that no server can be reached, a waiter is told at once. It is woken when one can. */
  #session(wake: (() => void) | undefined): Promise<ZooKeeperSession> {
    const { failure } = this.#keeper;
    if (!wake || !failure) return this.#keeper.connected();
    this.#wakesOnceUp.add(wake);
    return Promise.reject(failure);
  }

  #onUp(): void {
    const wakes = [...this.#wakesOnceUp];
    this.#wakesOnceUp.clear();
    for (const wake of wakes) wake();
  }

  #entryOf({ key, owner, metadata }: Contender, session: ZooKeeperSession): Entry {
    const present = this.#entries.get(owner);
    if (present?.place.session === session) return present;
    present?.place.unwatch();
    const { base, acl, mode } = this.#options;
    const place = new PLACES[mode](session, { key, owner, metadata, base, acl });
    const entry = { place, held: undefined, leaving: undefined };
    this.#entries.set(owner, entry);
    return entry;
  }

  #granted(entry: Entry, node: OwnNode, sentAt: number): LeaseAttempt {
    const { session } = entry.place;
    if (session.ended.aborted) throw new SessionExpiredError();
    if (entry.held?.node.czxid !== node.czxid) {
      entry.held?.forget();
      entry.held = new HeldNode(session, node, this.#clock);
    }
    return {
      acquired: true,
      fencingToken: node.czxid,
      ttlMs: session.times.trustMs,
      sentAt,
      revoked: entry.held.revoked,
    };
  }

  /** A caller that does not wait leaves the queue. When that fails for now, the core does it later. */
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

  /** Whether the key was ours. The end of the session is the end of all that was made in it. */
  async #leave(owner: string, entry: Entry): Promise<boolean> {
    const { place, held } = entry;
    place.unwatch();
    held?.forget();
    try {
      const left = !place.session.ended.aborted && (await place.leave());
      this.#entries.delete(owner);
      return left && held !== undefined;
    } catch (error) {
      entry.leaving = undefined;
      // Asking again would be of no use.
      if (isFinal(error)) this.#entries.delete(owner);
      throw error;
    }
  }
}
