import type { LockHandle } from 'nestjs-distributed-lock/core';

/** All that is known, in one process, of who has a key: of several keys there is one for each. */
export class WhoIsInside {
  readonly violations: string[] = [];
  readonly #inside = new Set<LockHandle>();
  #newestExclusive = 0n;
  #newest = 0n;

  enter(lock: LockHandle): void {
    this.#inside.add(lock);
    const { key, share, fencingToken } = lock;
    const shares = [...this.#inside].map((inside) => inside.share);
    if (shares.length > 1 && shares.includes(undefined)) {
      this.violations.push(`not alone in ${key}: ${JSON.stringify(shares)}`);
    }
    const permits = shares.map((each) => (each?.mode === 'permits' ? each : { permits: 0, limit: 0 }));
    const taken = permits.reduce((sum, each) => sum + each.permits, 0);
    const limit = Math.max(...permits.map((each) => each.limit));
    if (taken > limit) this.violations.push(`${taken} of ${limit} permits of ${key}`);
    const before = share ? this.#newestExclusive : this.#newest;
    if (fencingToken <= before) this.violations.push(`token ${fencingToken} after ${before} of ${key}`);
    if (!share) this.#newestExclusive = fencingToken;
    if (fencingToken > this.#newest) this.#newest = fencingToken;
  }

  leave(lock: LockHandle): void {
    this.#inside.delete(lock);
  }
}
