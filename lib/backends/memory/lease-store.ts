import {
  type Clock,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  systemClock,
} from '../../core/index.js';

interface Entry {
  readonly owner: string;
  readonly token: bigint;
  readonly holder: HolderMetadata & { readonly since: Date };
  expiresAt: number;
}

interface Waiter {
  readonly wake: () => void;
  /** Who waits, since it asked. */
  says?: Entry['holder'];
}

/** The smallest exact `LeaseStore`, for tests and for applications of one process: read it before writing another. */
export class MemoryLeaseStore implements LeaseStore {
  readonly name = 'memory';
  readonly guarantee = 'best-effort';
  readonly #entries = new Map<string, Entry>();
  readonly #waiters = new Map<string, Map<string, Waiter>>();
  #lastToken = 0n;

  constructor(private readonly clock: Clock = systemClock) {}

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const now = this.clock.now();
    const present = this.#live(key);
    const says = { ...metadata, since: wallTime(now) };
    if (present && present.owner !== owner) {
      const waiter = this.#waiters.get(key)?.get(owner);
      if (waiter) waiter.says ??= says;
      return { acquired: false, retryAfterMs: present.expiresAt - now, holder: present.holder };
    }
    const token = present?.token ?? this.#nextToken();
    this.#entries.set(key, { owner, token, holder: says, expiresAt: now + ttlMs });
    return { acquired: true, fencingToken: token };
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const present = this.#live(key);
    if (present?.owner !== owner) return false;
    present.expiresAt = this.clock.now() + ttlMs;
    return true;
  }

  async release(key: string, owner: string): Promise<boolean> {
    const present = this.#entries.get(key);
    if (present?.owner !== owner) return false;
    const isLive = this.#live(key) !== undefined;
    // Those who wait hear of a lease that has just ended, too.
    this.revoke(key);
    return isLive;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.#live(key)?.owner === owner;
  }

  async look(key: string): Promise<LeaseState> {
    const present = this.#live(key);
    const waiters = Array.from(this.#waiters.get(key) ?? [], ([owner, { says }]) => ({ owner, ...says }));
    if (!present) return { waiters };
    const { owner, token: fencingToken, holder, expiresAt } = present;
    return { holder: { owner, fencingToken, leftMs: expiresAt - this.clock.now(), ...holder }, waiters };
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    yield this.held().filter((key) => key.startsWith(prefix));
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    const waiters = this.#waiters.get(key) ?? new Map<string, Waiter>();
    this.#waiters.set(key, waiters.set(owner, { wake }));
    return () => {
      waiters.delete(owner);
      if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
    };
  }

  /** Nothing to do: other lock services may have leases here. */
  async close(): Promise<void> {}

  /** Takes the key from its holder behind its back. */
  revoke(key: string): void {
    this.#entries.delete(key);
    // All of them, in their order: the first may just be giving up.
    for (const { wake } of this.#waiters.get(key)?.values() ?? []) wake();
  }

  /** The keys that are held. */
  held(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key));
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (!entry || entry.expiresAt > this.clock.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /** One counter for all keys keeps no trace of a released key, and grows for each of them. */
  #nextToken(): bigint {
    this.#lastToken += 1n;
    return this.#lastToken;
  }
}

function wallTime(now: number): Date {
  return new Date(performance.timeOrigin + now);
}
