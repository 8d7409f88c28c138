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

/** Leases by the server's own clock. */
export class SimulatedServer {
  up = true;
  readonly #entries = new Map<string, Entry>();
  readonly #tokens = new Map<string, bigint>();
  readonly #watchers = new Map<string, Map<string, () => void>>();

  constructor(
    private readonly now: () => number,
    private readonly faults: ServerFaults,
    private readonly onFreed: (key: string, token: bigint) => void,
  ) {}

  tryAcquire(key: string, owner: string, ttlMs: number): LeaseAttempt {
    const present = this.#live(key);
    if (present && present.owner !== owner) {
      return { acquired: false, retryAfterMs: present.expiresAt - this.now() };
    }
    const token = present?.token ?? this.#nextToken(key);
    this.#entries.set(key, { owner, token, expiresAt: this.now() + ttlMs });
    return { acquired: true, fencingToken: token };
  }

  renew(key: string, owner: string, ttlMs: number): boolean {
    const present = this.#live(key);
    if (present?.owner !== owner) return false;
    present.expiresAt = this.now() + ttlMs;
    return true;
  }

  release(key: string, owner: string): boolean {
    const present = this.#live(key);
    if (!present || (present.owner !== owner && this.faults.releasesByKeyOnly !== true)) return false;
    this.#entries.delete(key);
    this.onFreed(key, present.token);
    for (const wake of this.#watchers.get(key)?.values() ?? []) wake();
    return true;
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Map<string, () => void>();
    this.#watchers.set(key, watchers.set(owner, wake));
    return () => void watchers.delete(owner);
  }

  /** The keys that are held. */
  get held(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key));
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
