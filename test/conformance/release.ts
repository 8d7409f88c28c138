import {
  eventually,
  failureOf,
  LONG_TTL_MS,
  SLACK_MS,
  type Suite,
  timeLimitOf,
  whileFrozen,
} from '../support/index.js';

export function release({ harness, it, revoking, timed }: Suite): void {
  it('leaves nothing, and the key free', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    await ours.withLock(key, () => undefined, { ttlMs: LONG_TTL_MS });
    await expect(harness.leftovers(key)).resolves.toEqual([]);
    const next = await theirs.tryAcquire(key);
    expect(next).not.toBeNull();
    await next?.release();
  });

  it('follows work that failed, before its error is told: nothing is left, and the key is free', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const error = new RangeError('sold out');
    const fail = (): never => {
      throw error;
    };
    for (const work of [fail, () => Promise.reject(error)]) {
      const key = contract.key();
      await expect(failureOf(ours.withLock(key, work, { ttlMs: LONG_TTL_MS }))).resolves.toBe(error);
      await expect(harness.leftovers(key)).resolves.toEqual([]);
      await (await theirs.acquire(key, { waitMs: 0 })).release();
    }
  });

  it('twice, or three times at once, is once', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ttlMs: LONG_TTL_MS });
    await Promise.all([lock.release(), lock.release(), lock.release()]);
    const next = await theirs.tryAcquire(key, { ttlMs: LONG_TTL_MS });
    await lock.release();
    await expect(ours.tryAcquire(key)).resolves.toBeNull();
    expect(next?.isHeld).toBe(true);
    expect(lock.state).toBe('released');
    expect(() => lock.throwIfLost()).not.toThrow();
    await next?.release();
  });

  revoking('of a former holder does not free the present one, nor does its renewal', async (contract) => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const key = contract.key();
    const former = await contract.win(ours, key, { ttlMs: LONG_TTL_MS });
    await harness.revoke(key);
    const present = await contract.win(theirs, key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(5_000) });
    await expect(former.renew()).resolves.toBe(false);
    await former.release();
    await expect(contract.contend(ours, key)).resolves.toBeNull();
    await expect(present.renew()).resolves.toBe(true);
    await present.release();
  });

  it('is final: a renewal afterwards says no and brings nothing back', async (contract) => {
    const backend = await contract.backend();
    const key = contract.key();
    const lease = await contract.win(backend, key, { ttlMs: LONG_TTL_MS });
    await lease.release();
    await expect(lease.renew()).resolves.toBe(false);
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  timed.it('of an expired lease is quiet', async (contract) => {
    const backend = await contract.backend();
    const key = contract.key();
    const lease = await contract.win(backend, key);
    const waitMs = lease.times.serverTtlMs * 3 + 5_000;
    const next = await contract.win(backend, key, { ttlMs: LONG_TTL_MS, waitMs });
    await expect(lease.release()).resolves.toBeUndefined();
    await expect(next.renew()).resolves.toBe(true);
    await next.release();
  });

  if (harness.freeze) {
    const { freeze } = harness;
    timed.alone('never hangs, with a server that does not answer, and is made good later', async (contract) => {
      const [ours, theirs] = [await contract.service(), await contract.service()];
      const key = contract.key();
      const lock = await ours.acquire(key);
      await whileFrozen(freeze, async () => {
        const since = performance.now();
        await lock.release();
        expect(performance.now() - since).toTakeLessThan(harness.shortTtlMs * 2 + SLACK_MS);
      });
      const next = await theirs.acquire(key, { waitMs: harness.shortTtlMs * 2 + 5_000 });
      await next.release();
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    });
  }
}
