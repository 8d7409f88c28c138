import type * as Core from 'nestjs-distributed-lock/core';
import { parseClaim, isExclusive, type Line } from 'nestjs-distributed-lock/core';
import { Random } from '../../support/random.js';
import { ContendedStorage } from './contended-storage.js';

const KEY = 'k';
const TTL_MS = 60_000;
/** Each asks so often: the others are through long before. */
const PATIENCE = 500;
const METADATA = { host: 'somewhere', pid: 1 };
const KEYS = [['', '~s'], ['', '~1-2', '~2-2'], ['~1-3', '~2-3'], ['']];

/** Returns the first mistake where several processes change one line at once, and ask again after each failure. */
export async function wrongUnderContention({ ClaimLeases }: Pick<typeof Core, 'ClaimLeases'>, seed: number) {
  const random = new Random(seed + 1);
  const cell = new ContendedStorage(random, random.oneOf([0, 0.1, 0.3]), random.chance(0.5));
  const kinds = random.oneOf(KEYS);
  const believers = new Believers();
  const visits = Array.from({ length: 3 }, async (_, client) => {
    const leases = new ClaimLeases(cell);
    const visit = (number: number): Promise<void> =>
      new Visit(leases, `${client}.${number}${random.oneOf(kinds)}`, believers).make();
    // The first one is asked for at once, the next ones together.
    await Promise.all([visit(1), visit(2), visit(3)]);
    await visit(4);
  });
  await cell.serve(Promise.all(visits));
  if (cell.line.length > 0) believers.wrong.push(`left in line: ${cell.line.map(({ owner }) => owner).join()}`);
  return believers.wrong;
}

/** Those who have been told that they have the key, and have not begun to release it. */
class Believers {
  readonly wrong: string[] = [];
  readonly #owners = new Set<string>();
  readonly #tokens = new Set<bigint>();

  enter(owner: string, token: bigint): void {
    if (this.#tokens.has(token)) this.wrong.push(`${owner} has the token of another one`);
    this.#tokens.add(token);
    this.#owners.add(owner);
    const claims = [...this.#owners].map((one) => parseClaim(one));
    const taken = claims.reduce((sum, { permits }) => sum + permits, 0);
    const isShared = this.#owners.size > 1 && [...this.#owners].some((one) => isExclusive(one));
    if (isShared || taken > Math.max(...claims.map(({ limit }) => limit))) {
      this.wrong.push(`${[...this.#owners].join(' ')} have the key together`);
    }
  }

  leave(owner: string): void {
    this.#owners.delete(owner);
  }
}

/** One who waits for the key, has it, and gives it back. */
class Visit {
  constructor(
    private readonly leases: Core.ClaimLeases<Line>,
    private readonly owner: string,
    private readonly believers: Believers,
  ) {}

  async make(): Promise<void> {
    const { leases, owner, believers } = this;
    if (await this.#getIn()) {
      if (!(await answered(() => leases.renew(KEY, owner, TTL_MS)))) believers.wrong.push(`${owner} lost the key`);
      believers.leave(owner);
    } else believers.wrong.push(`${owner} does not get in`);
    await answered(() => leases.release(KEY, owner));
    if (await answered(() => leases.isHeldBy(KEY, owner))) believers.wrong.push(`${owner} has not left`);
  }

  async #getIn(): Promise<boolean> {
    const { leases, owner, believers } = this;
    for (let times = 0; times < PATIENCE; times += 1) {
      const attempt = await answered(() => leases.tryAcquire(KEY, owner, TTL_MS, METADATA, true));
      if (!attempt.acquired) continue;
      believers.enter(owner, attempt.fencingToken);
      return true;
    }
    return false;
  }
}

/** Asks until there is an answer. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Error) || !/^(answer lost|never came|others changed)/u.test(error.message)) throw error;
    }
  }
}
