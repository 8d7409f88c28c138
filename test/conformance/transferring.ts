import { type LockHandle, LockLostError, type LockService, MAX_PERMITS } from 'nestjs-distributed-lock/core';
import { eventually, Holder, type Suite } from '../support/index.js';
import { aborted, type Contract, failureOf, handled, PATIENT_MS, throughout } from './contract.js';

const LONG = { ttlMs: 10_000, waitMs: PATIENT_MS };
const WITHIN = { withinMs: 20_000 };

/** A lock goes from one process to another by a ticket, and nobody is in between. */
export function transferring({ harness, it, timed }: Suite): void {
  if (harness.transfers !== true) {
    it('refuses to transfer a lock, which stays held', async (contract) => {
      const service = await contract.service();
      const lock = await service.acquire(contract.key(), LONG);
      await expect(lock.transfer(WITHIN)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'backend' });
      expect(lock.isHeld).toBe(true);
      await lock.release();
    });
    return;
  }

  it('A25: gives the lock to the process with the ticket, under a greater token, and closes the key meanwhile', async (contract) => {
    const [ours, theirs, others] = [await contract.service(), await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, LONG);
    const ticket = await lock.transfer(WITHIN);
    expect([lock.state, ours.inspect()]).toEqual(['released', []]);
    await expect(others.tryAcquire(key)).resolves.toBeNull();
    await expect(ours.tryAcquire(key)).resolves.toBeNull();
    const adopted = await theirs.adopt(ticket, LONG);
    expect(adopted).toMatchObject({ key, isHeld: true, state: 'held', share: undefined });
    expect(adopted.fencingToken).toBe(lock.fencingToken + 1n);
    const waiting = handled(others.acquire(key, LONG));
    await throughout(200, () => expect(others.inspect()).toEqual([]));
    // The former holder's handle is over.
    await lock.release();
    expect(adopted.isHeld).toBe(true);
    await adopted.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(adopted.fencingToken);
    await next.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('gives the lock to one of those who have the same ticket', async (contract) => {
    const services = await Promise.all([1, 2, 3].map(() => contract.service()));
    const key = contract.key();
    const ticket = await (await first(services).acquire(key, LONG)).transfer(WITHIN);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, (_, i) => services[i % 3]?.adopt(ticket, LONG) ?? Promise.reject(new Error('none'))),
    );
    const adopted = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(adopted).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'transferred' });
    expect(adopted[0]?.isHeld).toBe(true);
    await expect(first(services).tryAcquire(key)).resolves.toBeNull();
    await adopted[0]?.release();
    await expect(first(services).adopt(ticket)).rejects.toThrow(LockLostError);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  timed.it('frees the key of a ticket that nobody used in time', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const withinMs = Math.max(harness.shortTtlMs, 300);
    const lock = await ours.acquire(key, { ...LONG, ttlMs: 2 * PATIENT_MS });
    // Has seen a lease that lasts for longer than it may wait.
    const waiting = handled(theirs.acquire(key, LONG));
    await throughout(100, () => expect(lock.isHeld).toBe(true));
    const ticket = await lock.transfer({ withinMs });
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await expect(ours.adopt(ticket)).rejects.toMatchObject({ reason: 'transferred' });
    expect(next.isHeld).toBe(true);
    await next.release();
  });

  if (harness.order === 'fifo') {
    it('leaves those who waited before in their order', async (contract) => {
      const services = await Promise.all([1, 2, 3].map(() => contract.service()));
      const [ours, theirs, others] = [first(services), first(services.slice(1)), first(services.slice(2))];
      const key = contract.key();
      const lock = await ours.acquire(key, LONG);
      const inside: string[] = [];
      const early = others.withLock(key, () => inside.push('early'), LONG);
      await throughout(300, () => expect(lock.isHeld).toBe(true));
      const adopted = await theirs.adopt(await lock.transfer(WITHIN), LONG);
      const late = ours.withLock(key, () => inside.push('late'), LONG);
      await throughout(300, () => expect(inside).toEqual([]));
      await adopted.release();
      await Promise.all([early, late]);
      expect(inside).toEqual(['early', 'late']);
    });
  }

  it('hands a lock on again and again, in order with all who take it otherwise', async (contract) => {
    const services = await Promise.all([1, 2, 3].map(() => contract.service()));
    const key = contract.key();
    let lock: LockHandle = await first(services).acquire(key, LONG);
    for (let i = 1; i <= 6; i += 1) {
      const { fencingToken } = lock;
      lock = await (services[i % 3] ?? first(services)).adopt(await lock.transfer(WITHIN), LONG);
      expect(lock.fencingToken).toBe(fencingToken + 1n);
    }
    const inside: string[] = [];
    const others = services.map((service, i) => service.withLock(key, () => inside.push(`other ${i}`), LONG));
    await throughout(100, () => expect(inside).toEqual([]));
    await lock.release();
    await Promise.all(others);
    expect(inside).toHaveLength(3);
  });

  timed.revoking('renews an adopted lock, and tells its holder of a loss', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    // Long enough for a process that gets no processor for a while; others wait meanwhile, too.
    const ttlMs = Math.max(2_000, contract.processTtlMs);
    const ticket = await (await ours.acquire(key, LONG)).transfer(WITHIN);
    const adopted = await theirs.adopt(ticket, { ttlMs });
    await throughout(2 * ttlMs, () => expect(adopted.isHeld).toBe(true));
    await expect(ours.tryAcquire(key)).resolves.toBeNull();
    const loss = aborted(adopted.signal);
    await harness.revoke(key);
    await loss;
    expect(adopted.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
  });

  it('shows the adopter as the holder', async (contract) => {
    const [ours, theirs] = [await contract.service({ label: 'ours' }), await contract.service({ label: 'theirs' })];
    const key = contract.key();
    const adopted = await theirs.adopt(await (await ours.acquire(key, LONG)).transfer(WITHIN), LONG);
    expect((await ours.look(key)).holder).toMatchObject({ label: 'theirs' });
    expect(await theirs.checkSequencer(adopted.sequencer())).toBe('valid');
    await adopted.release();
  });

  it('outlives the service that passed it on, which ends as it should', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const ticket = await (await ours.acquire(key, LONG)).transfer(WITHIN);
    await ours.close();
    await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    await (await theirs.adopt(ticket, LONG)).release();
  });

  if (harness.connection) {
    const { connection } = harness;
    timed.it('outlives the process that passed it on', async (contract) => {
      const service = await contract.service();
      const key = contract.key();
      const holder = await Holder.start(connection());
      const { fencingToken } = await holder.acquire(key, LONG);
      const ticket = await holder.transfer(key, WITHIN.withinMs);
      await holder.kill();
      const adopted = await service.adopt(ticket, LONG);
      expect(adopted.fencingToken).toBe(fencingToken + 1n);
      await adopted.release();
    });
  }

  if (harness.shares === true) {
    it('gives permits away, and no others', async (contract) => {
      const [ours, theirs] = [await contract.service(), await contract.service()];
      const key = contract.key();
      const limit = Math.min(3, MAX_PERMITS);
      const take = (service: LockService): Promise<LockHandle | null> =>
        service.tryAcquire(key, { limit, ttlMs: 10_000 });
      const [one, two] = [await take(ours), await take(theirs)];
      const ticket = await one?.transfer(WITHIN);
      const adopted = await theirs.adopt(ticket ?? '', LONG);
      expect(adopted.share).toEqual({ mode: 'permits', permits: 1, limit });
      const three = await take(ours);
      await expect(take(theirs)).resolves.toBeNull();
      await adopted.release();
      const four = await take(theirs);
      expect([two, three, four].map((lock) => lock?.isHeld)).toEqual([true, true, true]);
      for (const lock of [two, three, four]) await lock?.release();
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    });
  }

  it('refuses what cannot be, and leaves the lock as it is', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service({ namespace: 'else' })];
    const key = contract.key();
    const lock = await ours.acquire(key, { ...LONG, reentrant: true });
    await lock.run(async () => {
      const inner = await ours.acquire(key, { reentrant: true });
      expect(await failureOf(inner.transfer(WITHIN))).toMatchObject({ option: 'transfer' });
      await inner.release();
    });
    for (const withinMs of [0, -1, Number.NaN, Infinity])
      expect(await failureOf(lock.transfer({ withinMs }))).toMatchObject({ option: 'withinMs' });
    for (const text of ['', 'ticket1.x', lock.sequencer(), lock.sequencer().replace('lock1', 'ticket1')])
      expect(await failureOf(ours.adopt(text))).toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'ticket' });
    expect(lock.isHeld).toBe(true);
    const ticket = await lock.transfer(WITHIN);
    expect(await failureOf(theirs.adopt(ticket))).toMatchObject({ option: 'ticket' });
    expect(await failureOf(lock.transfer(WITHIN))).toMatchObject({ reason: 'released' });
    await (await ours.adopt(ticket)).release();
    await refusesSharedTransfer(contract, ours);
  });

  async function refusesSharedTransfer(contract: Contract, service: LockService): Promise<void> {
    if (harness.shares !== true) return;
    const shared = await service.acquire(contract.key(), { ...LONG, mode: 'shared' });
    expect(await failureOf(shared.transfer(WITHIN))).toMatchObject({ option: 'transfer' });
    expect(shared.isHeld).toBe(true);
    await shared.release();
  }
}

function first<T>([item]: readonly T[]): T {
  if (item === undefined) throw new Error('there is none');
  return item;
}
