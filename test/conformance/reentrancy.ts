import { currentLock, LockDeadlockError, LockLostError, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { aborted, eventually, Gate, LONG_TTL_MS, type Suite } from '../support/index.js';

/** No lock is lost to a process that gets no processor for a while. */
const LONG = { defaults: { ttlMs: LONG_TTL_MS } };
const REENTRANT = { defaults: { ttlMs: LONG_TTL_MS, reentrant: true } };

export function reentrancy({ harness, it, timed }: Suite): void {
  it('lets the same call tree in again where both calls ask for it, under one token, until the outermost leaves', async (contract) => {
    const [ours, theirs] = [await contract.service(REENTRANT), await contract.service()];
    const key = contract.key();
    await ours.withLock(key, async (outer) => {
      await ours.withLock(key, async (inner) => {
        expect(inner.fencingToken).toBe(outer.fencingToken);
        expect(currentLock()).toBe(inner);
      });
      expect(outer.isHeld).toBe(true);
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    });
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('lets parallel branches of one call tree in that ask for it, and frees the key with the last', async (contract) => {
    const [ours, theirs] = [await contract.service(REENTRANT), await contract.service()];
    const key = contract.key();
    await ours.withLock(key, async () => {
      let inside = 0;
      let most = 0;
      const branch = async (): Promise<void> => {
        most = Math.max(most, ++inside);
        await new Promise(setImmediate);
        inside -= 1;
      };
      await Promise.all(Array.from({ length: 5 }, () => ours.withLock(key, branch)));
      expect(most).toBeGreaterThan(1);
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    });
    await (await theirs.acquire(key)).release();
  });

  it('keeps another call tree out, of the same process too', async (contract) => {
    const service = await contract.service(LONG);
    const key = contract.key();
    const [entrance, exit] = [new Gate(), new Gate()];
    const held = service.withLock(key, () => {
      entrance.open();
      return exit.opened;
    });
    await entrance.opened;
    await expect(service.acquire(key, { waitMs: 30 })).rejects.toBeInstanceOf(LockTimeoutError);
    exit.open();
    await held;
  });

  timed.revoking('does not let anybody into a lock that is lost', async (contract) => {
    // A renewal tells of the loss; until then nothing else may end the lock.
    const ttlMs = Math.max(6_000, harness.shortTtlMs);
    const service = await contract.service({ defaults: { ttlMs } });
    const key = contract.key();
    const work = service.withLock(key, async (lock) => {
      await harness.revoke(key);
      await aborted(lock.signal);
      await expect(service.acquire(key)).rejects.toBeInstanceOf(LockLostError);
    });
    await expect(work).rejects.toBeInstanceOf(LockLostError);
  });

  it('not asked for, names the deadlock at once; tryAcquire says null', async (contract) => {
    const service = await contract.service(LONG);
    const key = contract.key();
    await service.withLock(key, async () => {
      await expect(service.acquire(key)).rejects.toBeInstanceOf(LockDeadlockError);
      await expect(service.tryAcquire(key)).resolves.toBeNull();
    });
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  it('survives leaving too often', async (contract) => {
    const [ours, theirs] = [await contract.service(REENTRANT), await contract.service()];
    const key = contract.key();
    await ours.withLock(key, async (outer) => {
      const inner = await ours.acquire(key);
      await inner.release();
      await inner.release();
      expect(outer.isHeld).toBe(true);
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    });
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });
}
