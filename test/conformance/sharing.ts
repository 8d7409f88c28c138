import { randomInt, randomUUID } from 'node:crypto';
import {
  type AcquireOptions,
  LockConfigurationError,
  type LockHandle,
  type LockService,
  LockTimeoutError,
} from 'nestjs-distributed-lock/core';
import { aborted, eventually, handled, PATIENT_MS, type Suite, throughout } from '../support/index.js';
import { WhoIsInside } from './who-is-inside.js';

const SHARED = { mode: 'shared' } as const;
/** Long enough for a machine that is busy with something else. */
const LONG = { ttlMs: 10_000, waitMs: PATIENT_MS };

/** More than one at a time: readers beside each other, permits up to a limit, and those who want all of a key. */
export function sharing({ harness, it, timed }: Suite): void {
  if (harness.shares !== true) {
    it('refuses to share a key, where it is asked to', async (contract) => {
      const service = await contract.service();
      expect(() => service.resolve(SHARED)).toThrow(LockConfigurationError);
      expect(() => service.resolve({ limit: 2 })).toThrow('keeps one holder a key');
    });
    return;
  }

  it('lets readers of several processes in together, and a writer after the last of them', async (contract) => {
    const [one, two, three] = [await contract.service(), await contract.service(), await contract.service()];
    const key = contract.key();
    const readers = [await one.acquire(key, { ...SHARED, ...LONG }), await two.acquire(key, { ...SHARED, ...LONG })];
    await expect(three.tryAcquire(key)).resolves.toBeNull();
    const writing = handled(three.acquire(key, LONG));
    await readers[0]?.release();
    await throughout(100, () => expect(three.inspect()).toEqual([]));
    await readers[1]?.release();
    const writer = await writing;
    for (const reader of readers) expect(writer.fencingToken).toBeGreaterThan(reader.fencingToken);
    await expect(one.tryAcquire(key, SHARED)).resolves.toBeNull();
    await writer.release();
    const next = await one.acquire(key, { ...SHARED, ...LONG });
    expect(next.fencingToken).toBeGreaterThan(writer.fencingToken);
    await next.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('lets so many permits in as the limit says, whatever their weight', async (contract) => {
    const services = [await contract.service(), await contract.service()];
    const key = contract.key();
    const take = (i: number, permits: number): Promise<LockHandle | null> =>
      services[i % 2]?.tryAcquire(key, { limit: 5, permits, ttlMs: 10_000 }) ?? Promise.resolve(null);
    const held = [await take(0, 2), await take(1, 2)];
    await expect(take(0, 2)).resolves.toBeNull();
    const last = await take(0, 1);
    expect(last?.share).toEqual({ mode: 'permits', permits: 1, limit: 5 });
    await expect(take(1, 1)).resolves.toBeNull();
    await held[0]?.release();
    const again = await take(1, 2);
    expect(again?.isHeld).toBe(true);
    for (const lock of [held[1], last, again]) await lock?.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  timed.it('ends the share of one who died, and neither earlier nor later those of the others', async (contract) => {
    const [living, waiting] = [await contract.service(), await contract.service()];
    const key = contract.key();
    // Long enough to be seen before it ends.
    const ttlMs = Math.max(2_000, contract.processTtlMs);
    // Three times as long: a busy machine may be late with a renewal, and the survivor must not be lost with it.
    const survivor = await living.acquire(key, { ...SHARED, ttlMs: 3 * ttlMs, waitMs: 10_000 });
    await contract.win(await contract.backend(), key, { owner: `${randomUUID()}~s`, ttlMs, waitMs: 10_000 });
    const state = await waiting.look(key);
    expect(state.holders).toHaveLength(2);
    // Only the survivor renews.
    const hasOneHolder = async (): Promise<void> =>
      expect((await waiting.look(key)).holders ?? ['one']).toHaveLength(1);
    await eventually(hasOneHolder, { withinMs: 2 * ttlMs + 5_000 });
    expect(survivor.state).toBe('held');
    const writing = handled(waiting.acquire(key, { ttlMs: 10_000, waitMs: PATIENT_MS }));
    await throughout(ttlMs, () => expect([survivor.isHeld, waiting.inspect()]).toEqual([true, []]));
    await survivor.release();
    await (await writing).release();
  });

  it('lets readers in who do not wait, however many come at once', async (contract) => {
    const [one, two] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const readers = await Promise.all([one, one, one, two].map((service) => service.tryAcquire(key, SHARED)));
    expect(readers.map((reader) => reader?.isHeld)).toEqual([true, true, true, true]);
    for (const reader of readers) await reader?.release();
    const whole = await two.acquire(key, LONG);
    await whole.release();
  });

  it('forgets a claim that gave up behind an exclusive holder', async (contract) => {
    const [one, two] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const whole = await one.acquire(key, LONG);
    for (const claim of [SHARED, { limit: 2 }])
      await expect(two.acquire(key, { ...claim, waitMs: 200 })).rejects.toThrow(LockTimeoutError);
    const isForgotten = async (): Promise<void> => expect((await one.look(key)).waiters ?? []).toEqual([]);
    await eventually(isForgotten, { withinMs: 1_000 });
    await whole.release();
  });

  it('answers the same owner with its share again', async (contract) => {
    const backend = await contract.backend();
    const [key, owner] = [contract.key(), `${randomUUID()}~1-2`];
    const first = await contract.win(backend, key, { owner, ttlMs: 10_000 });
    const again = await contract.win(backend, key, { owner, ttlMs: 10_000 });
    expect(again.fencingToken).toBeGreaterThanOrEqual(first.fencingToken);
    const other = await contract.win(backend, key, { owner: `${randomUUID()}~1-2`, ttlMs: 10_000 });
    await again.release();
    await other.release();
    await expect(first.renew()).resolves.toBe(false);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('shows all who have a key with their shares, and takes it from one of them', async (contract) => {
    const [ours, theirs] = [await contract.service({ label: 'ours' }), await contract.service({ label: 'theirs' })];
    const key = contract.key();
    const mine = await ours.acquire(key, { limit: 3, permits: 2, ttlMs: 3 * contract.processTtlMs });
    const other = await theirs.acquire(key, { limit: 3, ...LONG });
    const { holder, holders = [] } = await ours.look(key);
    expect(holder).toEqual(holders[0]);
    expect(holders).toMatchObject([
      { label: 'ours', share: { mode: 'permits', permits: 2, limit: 3 } },
      { label: 'theirs', share: { mode: 'permits', permits: 1, limit: 3 } },
    ]);
    const told = aborted(mine.signal);
    await expect(theirs.evict(key, holders[0]?.owner)).resolves.toMatchObject({ label: 'ours' });
    const next = await theirs.acquire(key, { limit: 3, permits: 2, ...LONG });
    expect(next.fencingToken).toBeGreaterThan(mine.fencingToken);
    await told;
    expect(mine.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
    expect([mine.isHeld, other.isHeld, next.isHeld]).toEqual([false, true, true]);
    await next.release();
    await other.release();
  });

  it('knows by its sequencer whether a share is still held', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ...SHARED, ...LONG });
    const sequencer = lock.sequencer();
    await expect(theirs.checkSequencer(sequencer, { key })).resolves.toBe('valid');
    await lock.release();
    await expect(theirs.checkSequencer(sequencer, { key })).resolves.toBe('stale');
  });

  it('lets a writer in among readers who keep coming, and all of the permits among single ones', async (contract) => {
    const services = await Promise.all([1, 2, 3].map(() => contract.service()));
    for (const [small, big] of [
      [SHARED, {}],
      [{ limit: 3 }, { limit: 3, permits: 3 }],
    ] as const) {
      const key = contract.key();
      const crowd = new Crowd(services.slice(0, 2), key, small);
      crowd.start();
      const waiter = await services[2]?.acquire(key, { ...big, ...LONG });
      expect(waiter?.isHeld).toBe(true);
      expect(crowd.inside).toBe(0);
      await waiter?.release();
      await crowd.end();
    }
  });

  it('never lets in more than fit, of 4 × 15 callers with all kinds of claims', async (contract) => {
    const services = await Promise.all([1, 2, 3, 4].map(() => contract.service()));
    const key = contract.key();
    const visits = new MixedVisits(key);
    await Promise.all(services.flatMap((service) => Array.from({ length: 15 }, () => visits.pay(service))));
    expect(visits.paid).toBe(60);
    expect(visits.violations).toEqual([]);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });
}

/** Callers who come again and again, so that somebody is always inside. */
class Crowd {
  inside = 0;
  #over = false;
  #comers: Promise<unknown>[] = [];

  constructor(
    private readonly services: readonly LockService[],
    private readonly key: string,
    private readonly options: AcquireOptions,
  ) {}

  start(): void {
    this.#comers = this.services.flatMap((service) => [1, 2].map(() => this.#come(service)));
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#comers);
  }

  async #come(service: LockService): Promise<void> {
    while (!this.#over) {
      const lock = await service.acquire(this.key, { ...this.options, ...LONG });
      this.inside += 1;
      await new Promise((resolve) => setTimeout(resolve, 5 + randomInt(20)));
      this.inside -= 1;
      await lock.release();
    }
  }
}

const KINDS: readonly AcquireOptions[] = [{}, SHARED, { limit: 3 }, { limit: 3, permits: 2 }, { limit: 4, permits: 4 }];

class MixedVisits {
  paid = 0;
  readonly #inside = new WhoIsInside();

  constructor(private readonly key: string) {}

  get violations(): readonly string[] {
    return this.#inside.violations;
  }

  async pay(service: LockService): Promise<void> {
    const options = { ...KINDS[randomInt(KINDS.length)], ...LONG };
    await service.withLock(this.key, (lock) => this.#visit(lock), options);
  }

  async #visit(lock: LockHandle): Promise<void> {
    this.#inside.enter(lock);
    await new Promise((resolve) => setTimeout(resolve, randomInt(3)));
    this.#inside.leave(lock);
    this.paid += 1;
  }
}
