import { LockLostError, LockService, LockShutdownError } from 'nestjs-distributed-lock/core';
import { aborted, failureOf, handled, Holder, LONG_TTL_MS, SLACK_MS, type Suite } from '../support/index.js';
import { whileFrozen } from '../support/while-frozen.js';

export function close({ harness, it, timed }: Suite): void {
  it('tells the holders, and frees what they hold', async (contract) => {
    const [ours, theirs] = [new LockService(await harness.connect()), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    await ours.close();
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(lock.signal.reason).toMatchObject({ reason: 'shutdown' });
    await lock.release();
    await expect(harness.leftovers(key)).resolves.toEqual([]);
    await (await theirs.acquire(key, { waitMs: Math.max(2_000, harness.wakesWithinMs) })).release();
  });

  it('sends those who wait away, here and on the server, and lets nobody in any more', async (contract) => {
    const ours = new LockService(await harness.connect());
    const theirs = await contract.service();
    const key = contract.key();
    const lock = await theirs.acquire(key, { ttlMs: LONG_TTL_MS });
    const onServer = handled(ours.acquire(key, { waitMs: Infinity }));
    const here = handled(ours.acquire(key, { waitMs: Infinity }));
    await ours.close();
    await expect(failureOf(onServer)).resolves.toBeInstanceOf(LockShutdownError);
    await expect(failureOf(here)).resolves.toBeInstanceOf(LockShutdownError);
    await expect(failureOf(ours.acquire(key))).resolves.toBeInstanceOf(LockShutdownError);
    await lock.release();
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  it('twice is once', async (contract) => {
    const service = new LockService(await harness.connect());
    await (await service.acquire(contract.key())).release();
    await Promise.all([service.close(), service.close()]);
    await service.close();
    await service.backend.close();
  });

  it('closes one client only', async (contract) => {
    const [ours, theirs] = [new LockService(await harness.connect()), await contract.service()];
    const key = contract.key();
    const lock = await theirs.acquire(key, { ttlMs: LONG_TTL_MS });
    await ours.close();
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  if (harness.freeze) {
    const { freeze } = harness;
    timed.alone('never hangs, with a server that does not answer', async (contract) => {
      const service = new LockService(await harness.connect());
      const lock = await service.acquire(contract.key(), { ttlMs: LONG_TTL_MS });
      const told = aborted(lock.signal);
      await whileFrozen(freeze, async () => {
        const since = performance.now();
        await service.close(200);
        expect(performance.now() - since).toTakeLessThan(200 + 4 * SLACK_MS);
        await told;
      });
    });
  }

  if (harness.connection) {
    const { connection } = harness;
    timed.it('lets the process end by itself, with a lock taken and given back and one held', async (contract) => {
      await using holder = await Holder.start(connection());
      await holder.acquire(contract.key(), { ttlMs: LONG_TTL_MS });
      await holder.close();
      await expect(holder.exit()).resolves.toEqual({ code: 0, signal: null });
    });
  }
}
