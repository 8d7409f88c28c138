import assert from 'node:assert/strict';
import type { LockService } from '../core/index.js';
import { whenAborted, LONG_TTL_MS, MAX_WAIT_MS, type CheckGroup } from './check-context.js';

export const lockServiceChecks: CheckGroup = {
  'lets sixty callers of three lock services in one by one, with ever greater fencing tokens': async (context) => {
    const services = await Promise.all(Array.from({ length: 3 }, () => context.openService()));
    const key = context.newKey();
    const tokens: bigint[] = [];
    let insideCount = 0;
    let visitCount = 0;
    const visit = async (service: LockService): Promise<void> => {
      const work = async ({ fencingToken }: { readonly fencingToken: bigint }): Promise<void> => {
        insideCount += 1;
        assert.equal(insideCount, 1, 'two callers are inside');
        tokens.push(fencingToken);
        const countBefore = visitCount;
        await new Promise((resolve) => void setImmediate(resolve));
        visitCount = countBefore + 1;
        insideCount -= 1;
      };
      await service.withLock(key, work, { ttlMs: LONG_TTL_MS, waitMs: 2 * MAX_WAIT_MS });
    };
    await Promise.all(Array.from({ length: 20 }, () => services.map(visit)).flat());
    assert.equal(visitCount, 60, 'a visit was overwritten by another');
    const isAscending = tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? token));
    assert.ok(isAscending, `the tokens were ${tokens.join(', ')}`);
  },

  'lets in who waits when the holder has died': async (context) => {
    const [store, service] = [await context.openStore(), await context.openService()];
    const key = context.newKey();
    await context.acquire(store, key);
    const pendingAcquisition = service.acquire(key);
    if ((store.traits?.endsWith ?? 'ttl') !== 'ttl') await store.close();
    await (await pendingAcquisition).release();
  },

  'tells a holder that cannot renew of its loss before it lets the next one in': async (context) => {
    const [service, otherService] = [await context.openService({ watchdog: false }), await context.openService()];
    const key = context.newKey();
    const formerLock = await service.acquire(key);
    const lossReport = whenAborted(formerLock.signal);
    const presentLock = await otherService.acquire(key);
    assert.equal(formerLock.isHeld, false, 'two holders trust their locks');
    await lossReport;
    assert.ok(presentLock.fencingToken > formerLock.fencingToken, 'the token did not grow');
    await presentLock.release();
  },

  'keeps the key of a holder that renews, for longer than its time to live': async (context) => {
    const [service, otherService] = [await context.openService(), await context.openService()];
    const key = context.newKey();
    const lock = await service.acquire(key);
    const waitMs = context.harness.shortTtlMs * 2.5;
    await assert.rejects(otherService.acquire(key, { waitMs }), { code: 'LOCK_TIMEOUT' });
    assert.equal(lock.isHeld, true, 'the holder has lost the key');
    await lock.release();
    await (await otherService.acquire(key)).release();
  },
};
