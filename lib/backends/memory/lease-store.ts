import {
  type AdoptedLease,
  applyClaim,
  type Clock,
  createRefusal,
  describeLine,
  findReadyWaiters,
  type HolderMetadata,
  isHolder,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  type LeaseWatch,
  type Line,
  MAX_PERMITS,
  packMetadata,
  type TransferredLease,
  PROCESS_START_MS,
  type StoreTraits,
  systemClock,
  withoutExpired,
  withNewOwner,
  withoutOwner,
  withRenewal,
} from '../../core/index.js';

/** Smallest complete `LeaseStore`, for tests and for applications of one process: read it before writing another. */
export class MemoryLeaseStore implements LeaseStore {
  readonly name = 'memory';
  readonly guarantee = 'best-effort';
  readonly traits = { maxPermits: MAX_PERMITS } satisfies StoreTraits;
  /** Claims of each key: its holders, and then its waiters. */
  readonly #lines = new Map<string, Line>();
  readonly #wakeUpsByKey = new Map<string, Map<string, () => void>>();
  readonly #leaseWatchers = new Set<(key: string) => void>();
  #lastToken = 0n;

  constructor(private readonly clock: Clock = systemClock) {}

  /** Adds a refused owner to the line if that owner is watching the key. */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const now = this.clock.now();
    const description = describeHolder(metadata, now);
    const waitsUntil = this.#wakeUpsByKey.get(key)?.has(owner) === true ? Infinity : undefined;
    const { line, granted } = applyClaim(
      this.#liveLine(key),
      { owner, until: now + ttlMs, description },
      waitsUntil,
      this.#lastToken + 1n,
    );
    this.#storeLine(key, line);
    if (!granted) return createRefusal(line, owner, now);
    // All keys share one counter, because a counter of one key would have to be kept after the release of the key.
    if (granted.token > this.#lastToken) this.#lastToken = granted.token;
    return { acquired: true, fencingToken: granted.token };
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const line = withRenewal(this.#liveLine(key), owner, this.clock.now() + ttlMs);
    if (line) this.#storeLine(key, line);
    return line !== undefined;
  }

  /** Wakes the waiters, because the lease may now end earlier than their refusals said. */
  async passOn(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const wasHeld = await this.renew(key, owner, ttlMs);
    for (const wake of this.#wakeUpsByKey.get(key)?.values() ?? []) wake();
    return wasHeld;
  }

  async adopt(key: string, transferred: TransferredLease, adopted: AdoptedLease): Promise<LeaseAttempt> {
    const { owner, ttlMs, metadata } = adopted;
    const now = this.clock.now();
    const newEntry = { owner, until: now + ttlMs, description: describeHolder(metadata, now) };
    const line = withNewOwner(this.#liveLine(key), transferred.owner, newEntry);
    if (!line) return { acquired: false, retryAfterMs: null };
    this.#storeLine(key, line);
    return { acquired: true, fencingToken: transferred.fencingToken };
  }

  /** Releases the key. Wakes the waiters even if the lease has just expired. */
  async release(key: string, owner: string): Promise<boolean> {
    const wasHeld = isHolder(this.#liveLine(key), owner);
    this.#removeOwner(key, owner);
    return wasHeld;
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const wasHeld = await this.release(key, owner);
    if (wasHeld) for (const onChange of this.#leaseWatchers) onChange(key);
    return wasHeld;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    return isHolder(this.#liveLine(key), owner);
  }

  async look(key: string): Promise<LeaseState> {
    return describeLine(this.#liveLine(key), this.clock.now());
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    yield this.held().filter((key) => key.startsWith(prefix));
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    const wakeUps = this.#wakeUpsByKey.get(key) ?? new Map<string, () => void>();
    this.#wakeUpsByKey.set(key, wakeUps.set(owner, wake));
    return () => {
      wakeUps.delete(owner);
      if (wakeUps.size === 0 && this.#wakeUpsByKey.get(key) === wakeUps) this.#wakeUpsByKey.delete(key);
      if (!isHolder(this.#liveLine(key), owner)) this.#removeOwner(key, owner);
    };
  }

  watchLeases(onChange: (key: string) => void): LeaseWatch {
    this.#leaseWatchers.add(onChange);
    return { needsEarlyRenewal: false, end: () => void this.#leaseWatchers.delete(onChange) };
  }

  /** Does nothing, because other lock services may have leases in this store. */
  async close(): Promise<void> {}

  /** Revokes the leases of a key without notifying the holders. */
  revoke(key: string): void {
    this.#storeLine(
      key,
      this.#liveLine(key).filter(({ token }) => token === undefined),
    );
    this.#wakeReadyOwners(key);
  }

  /** Returns the keys that are held. */
  held(): string[] {
    return [...this.#lines.keys()].filter((key) => this.#liveLine(key).some(({ token }) => token !== undefined));
  }

  #liveLine(key: string): Line {
    return withoutExpired(this.#lines.get(key) ?? [], this.clock.now());
  }

  #storeLine(key: string, line: Line): void {
    if (line.length > 0) this.#lines.set(key, line);
    else this.#lines.delete(key);
  }

  #removeOwner(key: string, owner: string): void {
    this.#storeLine(key, withoutOwner(this.#liveLine(key), owner));
    this.#wakeReadyOwners(key);
  }

  #wakeReadyOwners(key: string): void {
    for (const owner of findReadyWaiters(this.#liveLine(key))) this.#wakeUpsByKey.get(key)?.get(owner)?.();
  }
}

function describeHolder(metadata: HolderMetadata, now: number): string {
  const since = new Date(PROCESS_START_MS + now).toISOString();
  return `${packMetadata(metadata).slice(0, -1)},"since":"${since}"}`;
}
