import assert from 'node:assert/strict';
import type { LockService } from '../core/index.js';
import { aborted, LONG_TTL_MS, PATIENCE_MS, type Theme } from './trial.js';

/** Promises that a `LockService` on the store keeps. */
export const locking: Theme = {
  'lets sixty callers of three lock services in one by one, with ever greater fencing tokens': async (trial) => {
    const services = await Promise.all(Array.from({ length: 3 }, () => trial.service()));
    const key = trial.key();
    const tokens: bigint[] = [];
    let [inside, count] = [0, 0];
    const visit = async (service: LockService): Promise<void> => {
      const work = async ({ fencingToken }: { readonly fencingToken: bigint }): Promise<void> => {
        inside += 1;
        assert.equal(inside, 1, 'two callers are inside');
        tokens.push(fencingToken);
        const before = count;
        await new Promise((resolve) => void setImmediate(resolve));
        count = before + 1;
        inside -= 1;
      };
      await service.withLock(key, work, { ttlMs: LONG_TTL_MS, waitMs: 2 * PATIENCE_MS });
    };
    await Promise.all(Array.from({ length: 20 }, () => services.map(visit)).flat());
    assert.equal(count, 60, 'a visit was overwritten by another');
    const ascending = tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? token));
    assert.ok(ascending, `the tokens were ${tokens.join(', ')}`);
  },

  'lets in who waits when the holder has died': async (trial) => {
    const [store, service] = [await trial.store(), await trial.service()];
    const key = trial.key();
    await trial.win(store, key);
    const waiting = service.acquire(key);
    if ((store.traits?.endsWith ?? 'ttl') !== 'ttl') await store.close();
    await (await waiting).release();
  },

  'tells a holder that cannot renew of its loss before it lets the next one in': async (trial) => {
    const [ours, theirs] = [await trial.service({ watchdog: false }), await trial.service()];
    const key = trial.key();
    const former = await ours.acquire(key);
    const told = aborted(former.signal);
    const present = await theirs.acquire(key);
    assert.equal(former.isHeld, false, 'two holders trust their locks');
    await told;
    assert.ok(present.fencingToken > former.fencingToken, 'the token did not grow');
    await present.release();
  },

  'keeps the key of a holder that renews, for longer than its time to live': async (trial) => {
    const [ours, theirs] = [await trial.service(), await trial.service()];
    const key = trial.key();
    const lock = await ours.acquire(key);
    const waitMs = trial.harness.shortTtlMs * 2.5;
    await assert.rejects(theirs.acquire(key, { waitMs }), { code: 'LOCK_TIMEOUT' });
    assert.equal(lock.isHeld, true, 'the holder has lost the key');
    await lock.release();
    await (await theirs.acquire(key)).release();
  },
};
