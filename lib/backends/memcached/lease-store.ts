import {
  type AdoptedLease,
  type Caller,
  ClaimLeases,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  type TransferredLease,
  systemClock,
  type StoreTraits,
} from '../../core/index.js';
import { ClaimLineStorage, isClaimLine } from './claim-line-storage.js';
import type { StoredItem } from './dialect.js';
import { type ItemNames, itemNames } from './item-names.js';
import { assertKeptLongEnough, requirePlausibleToken } from './lease-checks.js';
import { replaceExptime, readHolder, isLeaseOf, readHolderAndLeftMs, packLease } from './lease-value.js';
import { MemcachedError } from './error.js';
import type { MemcachedServers } from './servers.js';
import type { VerifiedConnection } from './verified-connection.js';

interface LeaseRequest {
  readonly owner: string;
  readonly ttlMs: number;
  readonly metadata: HolderMetadata;
}

const MAX_CHANGE_ATTEMPTS = 3;
/** Milliseconds after which a request whose connection was lost no longer arrives at the server. */
const MAX_ARRIVAL_DELAY_MS = 1_000;

/**
 * Leases on memcached servers: items `owner|date|metadata`, each with a counter of fencing tokens beside it. The store
 * changes an item only by a cas unique that the same connection has read together with the owner. The counter starts
 * with the time in microseconds, so that tokens grow even after the counter is lost.
 *
 * An item expires on a date by the server's own clock. A relative exptime would count from the second that this clock
 * last showed. After a suspension of the server, the item would expire too early.
 */
export class MemcachedLeaseStore implements LeaseStore {
  readonly name = 'memcached';
  readonly guarantee = 'best-effort';
  readonly traits = {
    /** Limits of an exptime: whole seconds, and 30 days, above which a server reads a date. */
    ttlLimits: { minMs: 2_000, maxMs: 30 * 86_400_000 },
    /** Limited because one item holds the claims of all holders. */
    maxPermits: 1_000,
  } satisfies StoreTraits;

  /** Owners whose request got no answer. The request may still arrive, and create a lease without a holder. */
  readonly #unansweredOwners = new Set<string>();
  /** Leases that are claims in a line, such as shares. All other leases are plain items. */
  readonly #claims;

  constructor(
    private readonly servers: MemcachedServers,
    private readonly prefix: string,
  ) {
    this.#claims = new ClaimLeases(new ClaimLineStorage(servers, prefix));
  }

  start(): Promise<void> {
    return this.servers.start();
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    await this.servers.assertSameServerList();
    if (!this.#claims.has(owner)) {
      const names = itemNames(this.prefix, key);
      const acquire = (connection: VerifiedConnection) => this.#acquire(connection, names, { owner, ttlMs, metadata });
      const outcome = await this.servers.getNode(key).run(acquire, () => this.#addUnansweredOwner(owner, ttlMs));
      if (outcome !== 'claim-line') return outcome;
    }
    const canWait = caller !== undefined && !caller.deadline.passed;
    return this.#claims.tryAcquire(key, owner, ttlMs, metadata, canWait).catch(this.#failureHandlerFor(owner, ttlMs));
  }

  async adopt(key: string, transferred: TransferredLease, adopted: AdoptedLease): Promise<LeaseAttempt> {
    await this.servers.assertSameServerList();
    return this.#claims.adopt(key, transferred, adopted).catch(this.#failureHandlerFor(adopted.owner, adopted.ttlMs));
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    if (this.#claims.has(owner)) return this.#claims.renew(key, owner, ttlMs);
    const names = itemNames(this.prefix, key);
    return this.servers.getNode(key).run((connection) => this.#renew(connection, names, owner, ttlMs));
  }

  async passOn(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const wasHeld = await this.renew(key, owner, ttlMs);
    this.#claims.forget(owner);
    await this.servers.getNode(key).run(async ({ leaseItems }) => leaseItems.delete(owner));
    return wasHeld;
  }

  async release(key: string, owner: string): Promise<boolean> {
    const wasHeld = await this.#release(key, owner);
    // A request whose connection was lost may still arrive, and create a lease without a holder.
    const releaseAgain = (): unknown => this.#release(key, owner).catch(() => undefined);
    if (this.#unansweredOwners.delete(owner))
      systemClock.schedule(MAX_ARRIVAL_DELAY_MS, releaseAgain, { background: true });
    return wasHeld;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const isHeld = await this.#read(key, (value) => (isClaimLine(value) ? undefined : isLeaseOf(value, owner)));
    return isHeld ?? this.#claims.isHeldBy(key, owner);
  }

  /** Returns a fencing token only for a line of claims. The counter of a plain lease also counts refused requests. */
  async look(key: string): Promise<LeaseState> {
    const state = await this.#read(key, (value, { clock }) => {
      if (isClaimLine(value)) return undefined;
      return value === '' ? {} : { holder: readHolderAndLeftMs(value, clock.microsecondsAt(systemClock.now())) };
    });
    return state ?? (await this.#claims.look(key)) ?? {};
  }

  async close(): Promise<void> {
    this.servers.close();
  }

  get health(): HealthSource {
    return this.servers.health;
  }

  /** @param interpret gets the value of the lease's item, or an empty text if the server has no item */
  #read<T>(key: string, interpret: (value: string, connection: VerifiedConnection) => T): Promise<T> {
    const { lease: leaseName } = itemNames(this.prefix, key);
    return this.servers.getNode(key).run(async (connection) => {
      const item = await connection.dialect.getItem(leaseName);
      return interpret(item?.value ?? '', connection);
    });
  }

  async #release(key: string, owner: string): Promise<boolean> {
    if (this.#claims.has(owner)) return this.#claims.release(key, owner);
    const { lease: leaseName } = itemNames(this.prefix, key);
    const outcome = await this.servers.getNode(key).run((connection) => deleteLeaseOf(connection, leaseName, owner));
    return outcome === 'claim-line' ? this.#claims.release(key, owner) : outcome;
  }

  #failureHandlerFor(owner: string, ttlMs: number): (error: unknown) => never {
    return (error) => {
      this.#addUnansweredOwner(owner, ttlMs);
      throw error;
    };
  }

  #addUnansweredOwner(owner: string, ttlMs: number): void {
    this.#unansweredOwners.add(owner);
    systemClock.schedule(ttlMs, () => this.#unansweredOwners.delete(owner), { background: true });
  }

  /** Requests a plain lease. Resolves to `claim-line` if the item is a line, where `#claims` has to add the claim. */
  async #acquire(
    connection: VerifiedConnection,
    names: ItemNames,
    request: LeaseRequest,
  ): Promise<LeaseAttempt | 'claim-line'> {
    const { owner, ttlMs, metadata } = request;
    const sentAt = systemClock.now();
    const firstToken = connection.clock.microsecondsAt(sentAt);
    const exptime = connection.clock.exptimeAfter(ttlMs, sentAt);
    const value = packLease(owner, exptime, metadata);
    const { isAdded, token, item } = await connection.dialect.acquireLease({ names, value, exptime }, firstToken);
    if (item === null) {
      if (isAdded) throw new MemcachedError('refused', 'the server did not keep the lease that it had stored');
      return { acquired: false, retryAfterMs: 0 };
    }
    if (isClaimLine(item.value)) return 'claim-line';
    if (!isLeaseOf(item.value, owner)) return refusalFor(item);
    connection.leaseItems.set(owner, item);
    if (isAdded && item.value === value) {
      assertKeptLongEnough(connection, item, ttlMs - (systemClock.now() - sentAt));
      return { acquired: true, fencingToken: requirePlausibleToken(token, firstToken) };
    }
    // An earlier request was carried out without an answer: its lease may expire sooner, and its token may be outdated.
    if (!(await this.#renew(connection, names, owner, ttlMs))) return { acquired: false, retryAfterMs: 0 };
    return {
      acquired: true,
      fencingToken: requirePlausibleToken(await connection.dialect.incrementCounter(names, firstToken), firstToken),
    };
  }

  async #renew(connection: VerifiedConnection, names: ItemNames, owner: string, ttlMs: number): Promise<boolean> {
    let item: StoredItem | null = connection.leaseItems.get(owner) ?? (await connection.dialect.getItem(names.lease));
    for (let attemptCount = 0; item !== null && isLeaseOf(item.value, owner); attemptCount += 1) {
      if (attemptCount === MAX_CHANGE_ATTEMPTS) throw changingLeaseError();
      const sentAt = systemClock.now();
      const exptime = connection.clock.exptimeAfter(ttlMs, sentAt);
      const value = replaceExptime(item.value, owner, exptime);
      item = await connection.dialect.replaceAndGetItem({ names, value, exptime }, item.cas);
      if (item?.value !== value) continue;
      connection.leaseItems.set(owner, item);
      assertKeptLongEnough(connection, item, ttlMs - (systemClock.now() - sentAt));
      return true;
    }
    connection.leaseItems.delete(owner);
    return false;
  }
}

async function deleteLeaseOf(
  connection: VerifiedConnection,
  leaseName: string,
  owner: string,
): Promise<boolean | 'claim-line'> {
  let item: StoredItem | null | undefined = connection.leaseItems.get(owner);
  connection.leaseItems.delete(owner);
  for (let attemptCount = 0; attemptCount < MAX_CHANGE_ATTEMPTS; attemptCount += 1) {
    item ??= await connection.dialect.getItem(leaseName);
    if (item !== null && isClaimLine(item.value)) return 'claim-line';
    if (item === null || !isLeaseOf(item.value, owner)) return false;
    if (await connection.dialect.deleteItem(leaseName, item.cas)) return true;
    item = null;
  }
  throw changingLeaseError();
}

function refusalFor({ value }: StoredItem): LeaseAttempt {
  const holder = readHolder(value);
  return { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) };
}

function changingLeaseError(): MemcachedError {
  return new MemcachedError('refused', 'the lease is ours and changes all the time');
}
