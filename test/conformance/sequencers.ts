import { LockService, readSequencer } from 'nestjs-distributed-lock/core';
import { handled, type Suite, whileFrozen } from '../support/index.js';

/** A holder's sequencer is believed for as long as it has the lock, and never again. */
export function sequencers({ harness, it, timed }: Suite): void {
  const ttlMs = 20_000;

  it('are valid in every process while the lock is held, for its key and no other', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const [key, other] = [contract.key(), contract.key()];
    const lock = await ours.acquire(key, { ttlMs });
    const shown = lock.sequencer();
    await expect(ours.checkSequencer(shown)).resolves.toBe('valid');
    await expect(theirs.checkSequencer(shown)).resolves.toBe('valid');
    await expect(theirs.checkSequencer(shown, { key })).resolves.toBe('valid');
    await expect(theirs.checkSequencer(shown, { key: other })).resolves.toBe('unknown');
    const next = handled(theirs.acquire(key, { ttlMs, waitMs: 10_000 }));
    await expect(theirs.checkSequencer(shown)).resolves.toBe('valid');
    await lock.release();
    await (await next).release();
  });

  it('are stale after the release, with another holder and without one', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    const lock = await ours.acquire(key, { ttlMs });
    const shown = lock.sequencer();
    await lock.release();
    await expect(theirs.checkSequencer(shown)).resolves.toBe('stale');
    const next = await theirs.acquire(key, { ttlMs });
    await expect(theirs.checkSequencer(shown)).resolves.toBe('stale');
    await expect(ours.checkSequencer(next.sequencer())).resolves.toBe('valid');
    await next.release();
  });

  it('are stale for the caller of this process that had the lock before the present one', async (contract) => {
    const service = await contract.service();
    const key = contract.key();
    const lock = await service.acquire(key, { ttlMs });
    const next = handled(service.acquire(key, { ttlMs, waitMs: 10_000 }));
    const shown = lock.sequencer();
    await lock.release();
    const other = await next;
    await expect(service.checkSequencer(shown)).resolves.toBe('stale');
    await expect(service.checkSequencer(other.sequencer())).resolves.toBe('valid');
    expect(() => lock.sequencer()).toThrow('released');
    await other.release();
  });

  timed.revoking(
    'are stale once the lock was lost: taken away on the server, or not renewed in time',
    async (contract) => {
      const [ours, theirs, dead] = [await contract.service(), await contract.service(), await contract.backend()];
      const [key, abandoned] = [contract.key(), contract.key()];
      const lock = await ours.acquire(key, { ttlMs });
      const shown = lock.sequencer();
      await harness.revoke(key);
      const next = await theirs.acquire(key, { ttlMs, waitMs: 10_000 });
      await expect(theirs.checkSequencer(shown)).resolves.toBe('stale');
      await next.release();

      const service = new LockService(dead);
      // Long enough to be asked about before it ends.
      const shortMs = Math.max(2_000, harness.shortTtlMs);
      const last = await service.acquire(abandoned, { ttlMs: shortMs, watchdog: false });
      const leftMs = shortMs * 3 + 10_000;
      const shownLast = last.sequencer();
      await expect(service.checkSequencer(shownLast)).resolves.toBe('valid');
      const heir = await theirs.acquire(abandoned, { ttlMs, waitMs: leftMs });
      await expect(theirs.checkSequencer(shownLast)).resolves.toBe('stale');
      await heir.release();
    },
  );

  it('are what only a holder can have: whatever else is shown is unknown, or stale', async (contract) => {
    const service = await contract.service();
    const key = contract.key();
    const lock = await service.acquire(key, { ttlMs });
    const { name } = service.backend;
    for (const text of ['', 'lock1.', 'lock2.W10', lock.sequencer().slice(0, -1), `${lock.sequencer()} `]) {
      await expect(service.checkSequencer(text)).resolves.toBe('unknown');
    }
    const { owner } = readSequencer(lock.sequencer()) ?? { owner: '' };
    for (const forged of [sequencerOf('elsewhere', key, owner), sequencerOf(name, key, owner)]) {
      await expect(service.checkSequencer(forged)).resolves.toBe('unknown');
    }
    const { backend } = service;
    for (const hostile of ['x', '%', '_', '*', 'a/b', 'a:b', 'x'.repeat(100), `${owner}x`, owner.slice(0, -1)]) {
      await expect(backend.store.isHeldBy?.(key, hostile)).resolves.toBe(false);
    }
    await lock.release();
  });

  if (harness.freeze) {
    const { freeze } = harness;
    timed.alone('cannot be checked without the server: an error', async (contract) => {
      const [ours, theirs] = [await contract.service(), await contract.service()];
      const lock = await ours.acquire(contract.key(), { ttlMs });
      const shown = lock.sequencer();
      await expect(theirs.checkSequencer(shown)).resolves.toBe('valid');
      await whileFrozen(freeze, async () => {
        const checked = await theirs.checkSequencer(shown).catch((error: unknown) => error);
        // A SQLite database that nobody can write may still be read.
        if (checked !== 'valid' || !theirs.backend.name.includes('sqlite')) {
          expect(checked).toMatchObject({ code: 'LOCK_BACKEND' });
        }
      });
      await lock.release();
    });
  }
}

/** As anybody can write one, but for the signature. */
function sequencerOf(...[backend, key, owner]: readonly string[]): string {
  return `lock1.${Buffer.from(JSON.stringify([backend, key, '1', owner])).toString('base64url')}`;
}
