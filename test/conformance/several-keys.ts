import { randomInt } from 'node:crypto';
import {
  type AcquireOptions,
  type KeyClaim,
  LockConfigurationError,
  LockLostError,
  type LockService,
  type LockSet,
  LockTimeoutError,
} from 'nestjs-distributed-lock/core';
import { aborted, eventually, failureOf, handled, type Suite, timeLimitOf } from '../support/index.js';
import { WhoIsInside } from './who-is-inside.js';

/** Long enough for a machine that is busy with something else. */
const LONG = { ttlMs: 10_000, waitMs: 30_000 };
const SHARED = { mode: 'shared' } as const;
const EXCLUSIVE: readonly Claim[] = [{}];
const MIXED: readonly Claim[] = [{}, SHARED, SHARED, { limit: 3 }, { limit: 3, permits: 2 }, { limit: 4, permits: 4 }];

type Claim = Pick<AcquireOptions, 'mode' | 'limit' | 'permits'>;

/** Several keys, taken together: all or none, and nobody waits for each other in a circle. */
export function severalKeys({ harness, it, timed }: Suite): void {
  const shares = harness.shares === true;

  it('takes all keys that are free, and gives all back', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const keys = [contract.key(), contract.key(), contract.key()];
    const set = await ours.acquireAll(keys.toReversed(), LONG);
    expect(set.locks.map(({ key }) => key)).toEqual(keys.toSorted());
    for (const key of keys) await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    expect(set.isHeld).toBe(true);
    await set.release();
    for (const key of keys) await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('takes none when one stays busy, and leaves the others to whoever comes', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const [first = '', second = '', third = ''] = [contract.key(), contract.key(), contract.key()].toSorted();
    const busy = await theirs.acquire(second, LONG);
    for (const waitMs of [0, timeLimitOf(300)]) {
      const failure = failureOf(ours.acquireAll([third, second, first], { ...LONG, waitMs }));
      await expect(failure).resolves.toBeInstanceOf(LockTimeoutError);
      await expect(failure).resolves.toMatchObject({ key: second });
      expect(ours.inspect()).toEqual([]);
      const others = await theirs.acquireAll([first, third], LONG);
      await others.release();
    }
    await busy.release();
    for (const key of [first, second, third]) {
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    }
  });

  timed.revoking('is lost with any of its keys, and gives the others back', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const keys = [contract.key(), contract.key()].toSorted();
    const ttlMs = Math.max(3_000, 2 * harness.shortTtlMs);
    const watched = async (set: LockSet): Promise<void> => {
      await harness.revoke(keys[1] ?? '');
      await aborted(set.signal);
      expect(set.isHeld).toBe(false);
      // Where an operator cannot tell whose key it is, the other one goes, too.
      expect(set.signal.reason).toBeInstanceOf(LockLostError);
    };
    const work = ours.withLocks(keys, watched, { ...LONG, ttlMs });
    await expect(work).rejects.toBeInstanceOf(LockLostError);
    const set = await theirs.acquireAll(keys, LONG);
    await set.release();
  });

  it('never has callers wait in a circle, nor lets in two who do not fit, of 4 × 15 in any order', async (contract) => {
    const services = await Promise.all([1, 2, 3, 4].map(() => contract.service()));
    const visits = new SetVisits(
      Array.from({ length: 5 }, () => contract.key()),
      shares ? MIXED : EXCLUSIVE,
    );
    await Promise.all(services.flatMap((service) => Array.from({ length: 15 }, () => visits.pay(service))));
    expect(visits.violations).toEqual([]);
    expect(visits.paid).toBe(60);
    for (const key of visits.keys) await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  if (!shares) {
    it('refuses to share one of several keys, before it takes any', async (contract) => {
      const service = await contract.service();
      const keys = [contract.key(), { key: contract.key(), mode: 'shared' }] as const;
      await expect(service.acquireAll(keys)).rejects.toBeInstanceOf(LockConfigurationError);
      expect(service.inspect()).toEqual([]);
    });
    return;
  }

  it('takes of each key as much as was asked, beside others who fit', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const [plan, account, gate] = [contract.key(), contract.key(), contract.key()];
    const wanted = (key: string): readonly KeyClaim[] => [
      { key: plan, mode: 'shared' },
      { key },
      { key: gate, limit: 3 },
    ];
    const [mine, other] = [
      await ours.acquireAll(wanted(account), LONG),
      await theirs.acquireAll(wanted('alone'), LONG),
    ];
    const busy = theirs.acquireAll(
      [
        { key: gate, limit: 3, permits: 2 },
        { key: plan, mode: 'shared' },
      ],
      {
        ...LONG,
        waitMs: 0,
      },
    );
    await expect(busy).rejects.toMatchObject({ key: gate });
    const writing = handled(theirs.acquireAll([plan, account], LONG));
    await Promise.all([mine.release(), other.release()]);
    const writer = await writing;
    expect(writer.locks.map(({ share }) => share)).toEqual([undefined, undefined]);
    await writer.release();
    for (const key of [plan, account, gate]) {
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    }
  });
}

/** Callers with random sets of the keys, in random orders, who want something random of each. */
class SetVisits {
  paid = 0;
  readonly #inside: ReadonlyMap<string, WhoIsInside>;

  constructor(
    readonly keys: readonly string[],
    private readonly claims: readonly Claim[],
  ) {
    this.#inside = new Map(keys.map((key) => [key, new WhoIsInside()]));
  }

  get violations(): readonly string[] {
    return [...this.#inside.values()].flatMap(({ violations }) => violations);
  }

  async pay(service: LockService): Promise<void> {
    const rest = [...this.keys];
    const wanted = Array.from({ length: 1 + randomInt(3) }, () => {
      const [key = ''] = rest.splice(randomInt(rest.length), 1);
      return { key, ...this.claims[randomInt(this.claims.length)] };
    });
    await service.withLocks(wanted, (set) => this.#visit(set), LONG);
  }

  async #visit({ locks }: LockSet): Promise<void> {
    for (const lock of locks) this.#inside.get(lock.key)?.enter(lock);
    await new Promise((resolve) => setTimeout(resolve, randomInt(3)));
    for (const lock of locks) this.#inside.get(lock.key)?.leave(lock);
    this.paid += 1;
  }
}
