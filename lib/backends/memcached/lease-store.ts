import {
  type Asker,
  ClaimLeases,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  systemClock,
} from '../../core/index.js';
import { ClaimCell, isLine } from './claim-cell.js';
import type { Present } from './dialect.js';
import { type ItemNames, itemNames } from './item-names.js';
import { extended, holderIn, isOwn, keyHolderIn, packLease } from './lease-value.js';
import { MemcachedError } from './error.js';
import type { MemcachedRing } from './ring.js';
import type { VerifiedConnection } from './verified-connection.js';

interface Asked {
  readonly owner: string;
  readonly ttlMs: number;
  readonly metadata: HolderMetadata;
}

/** How often an item may change between two readings before the store gives up. */
const MOST_LOOKS = 3;
/** A request whose connection was lost arrives within this time, or never. */
const LATEST_ARRIVAL_MS = 1_000;
/** A counter lives for a day and counts slower than microseconds. A lock service made none further from the time. */
const TOKEN_RANGE = 2n * 86_400_000_000n;

/**
 * A lease is an item `owner|date|metadata`, its fencing token a counter beside it. An item is changed only by the cas
 * id that this connection told together with the owner. The counter begins with the time in microseconds: tokens grow
 * also when it is lost.
 *
 * An item ends on a date by the server's own clock, never before. A time to live would begin with the second that the
 * server last saw. On a server that has just been stopped for longer it would end at once.
 */
export class MemcachedLeaseStore implements LeaseStore {
  readonly name = 'memcached';
  readonly guarantee = 'best-effort';
  readonly traits = {
    /** A server counts whole seconds, and reads more than 30 days as a date. */
    ttlLimits: { minMs: 2_000, maxMs: 30 * 86_400_000 },
    /** An item holds all claims to a key. */
    maxPermits: 1_000,
  };

  /** Their requests were lost. One that still arrives would make a lease that nobody knows of. */
  readonly #inDoubt = new Set<string>();
  readonly #claims;

  constructor(
    private readonly servers: MemcachedRing,
    private readonly prefix: string,
  ) {
    this.#claims = new ClaimLeases(new ClaimCell(servers, prefix));
  }

  start(): Promise<void> {
    return this.servers.start();
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    await this.servers.agree();
    if (!this.#claims.has(owner)) {
      const names = itemNames(this.prefix, key);
      const acquire = (connection: VerifiedConnection) => this.#acquire(connection, names, { owner, ttlMs, metadata });
      const attempt = await this.servers.nodeOf(key).run(acquire, () => this.#doubt(owner, ttlMs));
      if (attempt !== 'meets a line') return attempt;
    }
    const waits = asker !== undefined && !asker.deadline.passed;
    try {
      return await this.#claims.tryAcquire(key, owner, ttlMs, metadata, waits);
    } catch (error) {
      this.#doubt(owner, ttlMs);
      throw error;
    }
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    if (this.#claims.has(owner)) return this.#claims.renew(key, owner, ttlMs);
    const names = itemNames(this.prefix, key);
    return this.servers.nodeOf(key).run((connection) => this.#renew(connection, names, owner, ttlMs));
  }

  async release(key: string, owner: string): Promise<boolean> {
    const released = await this.#release(key, owner);
    // A lost request may arrive after a release that found nothing.
    const again = (): unknown => this.#release(key, owner).catch(() => undefined);
    if (this.#inDoubt.delete(owner)) systemClock.schedule(LATEST_ARRIVAL_MS, again, { background: true });
    return released;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const held = await this.#read(key, (value) => (isLine(value) ? undefined : isOwn(value, owner)));
    return held ?? this.#claims.isHeldBy(key, owner);
  }

  /** Refused requests count tokens, too: the counter does not tell the holder's. */
  async look(key: string): Promise<LeaseState> {
    const state = await this.#read(key, (value, { clock }) => {
      if (isLine(value)) return undefined;
      return value === '' ? {} : { holder: keyHolderIn(value, clock.microseconds(systemClock.now())) };
    });
    return state ?? (await this.#claims.look(key)) ?? {};
  }

  async close(): Promise<void> {
    this.servers.close();
  }

  get health(): HealthSource {
    return this.servers.health;
  }

  /** @param understand the lease of `key`; empty where there is none */
  #read<T>(key: string, understand: (value: string, connection: VerifiedConnection) => T): Promise<T> {
    const { lease } = itemNames(this.prefix, key);
    return this.servers.nodeOf(key).run(async (connection) => {
      const present = await connection.dialect.look(lease);
      return understand(present?.value ?? '', connection);
    });
  }

  async #release(key: string, owner: string): Promise<boolean> {
    if (this.#claims.has(owner)) return this.#claims.release(key, owner);
    const { lease } = itemNames(this.prefix, key);
    const released = await this.servers.nodeOf(key).run((connection) => release(connection, lease, owner));
    return released === 'meets a line' ? this.#claims.release(key, owner) : released;
  }

  #doubt(owner: string, ttlMs: number): void {
    this.#inDoubt.add(owner);
    systemClock.schedule(ttlMs, () => this.#inDoubt.delete(owner), { background: true });
  }

  async #acquire(
    connection: VerifiedConnection,
    names: ItemNames,
    asked: Asked,
  ): Promise<LeaseAttempt | 'meets a line'> {
    const { owner, ttlMs, metadata } = asked;
    const sentAt = systemClock.now();
    const firstToken = connection.clock.microseconds(sentAt);
    const expiresAt = connection.clock.expiryAfter(ttlMs, sentAt);
    const value = packLease(owner, expiresAt, metadata);
    const { added, token, present } = await connection.dialect.acquire({ names, value, expiresAt }, firstToken);
    if (present === null) {
      if (added) throw new MemcachedError('refused', 'the server did not keep the lease that it had stored');
      return { acquired: false, retryAfterMs: 0 };
    }
    if (isLine(present.value)) return 'meets a line';
    if (!isOwn(present.value, owner)) return refusalBy(present);
    connection.leases.set(owner, present);
    if (added && present.value === value) {
      assertKept(connection, present, ttlMs - (systemClock.now() - sentAt));
      return { acquired: true, fencingToken: plausible(token, firstToken) };
    }
    // The answer to an earlier request was lost: its lease may end sooner, and its token may be outdated.
    if (!(await this.#renew(connection, names, owner, ttlMs))) return { acquired: false, retryAfterMs: 0 };
    return { acquired: true, fencingToken: plausible(await connection.dialect.count(names, firstToken), firstToken) };
  }

  async #renew(connection: VerifiedConnection, names: ItemNames, owner: string, ttlMs: number): Promise<boolean> {
    let known: Present | null = connection.leases.get(owner) ?? (await connection.dialect.look(names.lease));
    for (let looks = 0; known !== null && isOwn(known.value, owner); looks += 1) {
      if (looks === MOST_LOOKS) throw restless();
      const sentAt = systemClock.now();
      const expiresAt = connection.clock.expiryAfter(ttlMs, sentAt);
      const value = extended(known.value, owner, expiresAt);
      known = await connection.dialect.renew({ names, value, expiresAt }, known.cas);
      if (known?.value !== value) continue;
      connection.leases.set(owner, known);
      assertKept(connection, known, ttlMs - (systemClock.now() - sentAt));
      return true;
    }
    connection.leases.delete(owner);
    return false;
  }
}

async function release(
  connection: VerifiedConnection,
  lease: string,
  owner: string,
): Promise<boolean | 'meets a line'> {
  let known: Present | null | undefined = connection.leases.get(owner);
  connection.leases.delete(owner);
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    known ??= await connection.dialect.look(lease);
    if (known !== null && isLine(known.value)) return 'meets a line';
    if (known === null || !isOwn(known.value, owner)) return false;
    if (await connection.dialect.remove(lease, known.cas)) return true;
    known = null;
  }
  throw restless();
}

function refusalBy({ value }: Present): LeaseAttempt {
  const holder = holderIn(value);
  return { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) };
}

/** Nobody trusts a lease for longer than the server says that it keeps it. */
function assertKept({ clock }: VerifiedConnection, { remainingS = Infinity }: Present, trustedMs: number): void {
  if (remainingS * 1_000 >= trustedMs) return;
  clock.doubt();
  throw new MemcachedError('refused', `the server would keep the lease for ${remainingS} s only`);
}

function plausible(token: bigint, time: bigint): bigint {
  if (token > time - TOKEN_RANGE && token < time + TOKEN_RANGE) return token;
  throw new MemcachedError(
    'refused',
    `the counter of fencing tokens shows ${token}: delete it, for no lock service made it`,
  );
}

function restless(): MemcachedError {
  return new MemcachedError('refused', 'the lease is ours and changes all the time');
}
