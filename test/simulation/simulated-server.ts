import type { LeaseAttempt } from 'nestjs-distributed-lock/core';

interface Entry {
  readonly owner: string;
  readonly token: bigint;
  expiresAt: number;
}

/** Faults of the server itself, none of which it may have: each must be found. */
export interface ServerFaults {
  readonly releasesByKeyOnly?: boolean;
  readonly keepsTheToken?: boolean;
}

/** Leases by the server's own clock; where they end with sessions, all sessions live, and who waits stands in line. */
export class SimulatedServer {
  up = true;
  readonly #entries = new Map<string, Entry>();
  readonly #lines = new Map<string, Set<string>>();
  readonly #tokens = new Map<string, bigint>();
  readonly #watchers = new Map<string, Map<string, () => void>>();

  constructor(
    private readonly now: () => number,
    private readonly hasSessions: boolean,
    private readonly faults: ServerFaults,
    private readonly onFreed: (key: string, token: bigint) => void,
    private readonly onGranted: (key: string, token: bigint) => void,
  ) {}

  tryAcquire(key: string, owner: string, ttlMs: number): LeaseAttempt {
    const present = this.#live(key);
    const line = this.#line(key);
    const [first = owner] = present ? [present.owner] : line;
    if (first !== owner) {
      if (this.hasSessions && this.#watchers.get(key)?.has(owner) === true) line.add(owner);
      return { acquired: false, retryAfterMs: present && !this.hasSessions ? present.expiresAt - this.now() : null };
    }
    line.delete(owner);
    const token = present?.token ?? this.#nextToken(key);
    if (!present) this.onGranted(key, token);
    this.#entries.set(key, { owner, token, expiresAt: this.#endOf(ttlMs) });
    return { acquired: true, fencingToken: token };
  }

  renew(key: string, owner: string, ttlMs: number): boolean {
    const present = this.#live(key);
    if (present?.owner !== owner) return false;
    present.expiresAt = this.#endOf(ttlMs);
    return true;
  }

  release(key: string, owner: string): boolean {
    const present = this.#live(key);
    const wasOwners = present !== undefined && (present.owner === owner || this.faults.releasesByKeyOnly === true);
    if (!this.#line(key).delete(owner) && !wasOwners) return false;
    if (wasOwners) {
      this.#entries.delete(key);
      this.onFreed(key, present.token);
    }
    for (const wake of this.#watchers.get(key)?.values() ?? []) wake();
    return wasOwners;
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Map<string, () => void>();
    this.#watchers.set(key, watchers.set(owner, wake));
    return () => void watchers.delete(owner);
  }

  /** The keys that are held, or waited for. */
  get left(): string[] {
    return [...this.#tokens.keys()].filter((key) => this.#live(key) ?? this.#line(key).size > 0);
  }

  #endOf(ttlMs: number): number {
    return this.hasSessions ? Infinity : this.now() + ttlMs;
  }

  #line(key: string): Set<string> {
    const line = this.#lines.get(key) ?? new Set<string>();
    this.#lines.set(key, line);
    return line;
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.expiresAt > this.now() ? entry : undefined;
  }

  #nextToken(key: string): bigint {
    const last = this.#tokens.get(key) ?? 0n;
    const next = this.faults.keepsTheToken === true && last > 0n ? last : last + 1n;
    this.#tokens.set(key, next);
    return next;
  }
}
