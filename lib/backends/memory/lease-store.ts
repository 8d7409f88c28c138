import {
  alive,
  ask,
  type Clock,
  type HolderMetadata,
  holds,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  type Line,
  MOST_PERMITS,
  packMetadata,
  ready,
  refusal,
  renewed,
  stateOf,
  systemClock,
  without,
} from '../../core/index.js';

/** The smallest exact `LeaseStore`, for tests and for applications of one process: read it before writing another. */
export class MemoryLeaseStore implements LeaseStore {
  readonly name = 'memory';
  readonly guarantee = 'best-effort';
  readonly traits = { maxPermits: MOST_PERMITS };
  /** Those who hold a key, and then those who wait. */
  readonly #lines = new Map<string, Line>();
  /** Who is to be woken, by key and owner. */
  readonly #waiters = new Map<string, Map<string, () => void>>();
  #lastToken = 0n;

  constructor(private readonly clock: Clock = systemClock) {}

  /** Who waits is put in line. */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const now = this.clock.now();
    const says = sayingSince(metadata, now);
    const waitsUntil = this.#waiters.get(key)?.has(owner) === true ? Infinity : undefined;
    const { line, granted } = ask(
      this.#live(key),
      { owner, until: now + ttlMs, says },
      waitsUntil,
      this.#lastToken + 1n,
    );
    this.#keep(key, line);
    if (!granted) return refusal(line, owner, now);
    // One counter for all keys keeps no trace of a released key, and grows for each of them.
    if (granted.token > this.#lastToken) this.#lastToken = granted.token;
    return { acquired: true, fencingToken: granted.token };
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const line = renewed(this.#live(key), owner, this.clock.now() + ttlMs);
    if (line) this.#keep(key, line);
    return line !== undefined;
  }

  /** Those who wait hear of a lease that has just ended, too. */
  async release(key: string, owner: string): Promise<boolean> {
    const wasHeld = holds(this.#live(key), owner);
    this.#leave(key, owner);
    return wasHeld;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    return holds(this.#live(key), owner);
  }

  async look(key: string): Promise<LeaseState> {
    return stateOf(this.#live(key), this.clock.now());
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    yield this.held().filter((key) => key.startsWith(prefix));
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    const waiters = this.#waiters.get(key) ?? new Map<string, () => void>();
    this.#waiters.set(key, waiters.set(owner, wake));
    return () => {
      waiters.delete(owner);
      if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
      if (!holds(this.#live(key), owner)) this.#leave(key, owner);
    };
  }

  /** Nothing to do: other lock services may have leases here. */
  async close(): Promise<void> {}

  /** Takes the key from its holders behind their backs. */
  revoke(key: string): void {
    this.#keep(
      key,
      this.#live(key).filter(({ token }) => token === undefined),
    );
    this.#wake(key);
  }

  /** The keys that are held. */
  held(): string[] {
    return [...this.#lines.keys()].filter((key) => this.#live(key).some(({ token }) => token !== undefined));
  }

  #live(key: string): Line {
    return alive(this.#lines.get(key) ?? [], this.clock.now());
  }

  #keep(key: string, line: Line): void {
    if (line.length > 0) this.#lines.set(key, line);
    else this.#lines.delete(key);
  }

  #leave(key: string, owner: string): void {
    this.#keep(key, without(this.#live(key), owner));
    this.#wake(key);
  }

  #wake(key: string): void {
    for (const owner of ready(this.#live(key))) this.#waiters.get(key)?.get(owner)?.();
  }
}

function sayingSince(metadata: HolderMetadata, now: number): string {
  const since = new Date(performance.timeOrigin + now).toISOString();
  return `${packMetadata(metadata).slice(0, -1)},"since":"${since}"}`;
}
