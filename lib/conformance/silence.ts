import assert from 'node:assert/strict';
import type { LeaseStoreHarness } from './harness.js';
import { whenAborted, assertSettlesInTime, LONG_TTL_MS, MAX_WAIT_MS, type CheckGroup } from './check-context.js';

const MAX_REPORT_DELAY_MS = 500;

export function createSilenceChecks(freeze: NonNullable<LeaseStoreHarness['freeze']>): CheckGroup {
  return {
    'says of no answer that it is none, in time, and goes on when the server answers again': async (context) => {
      const store = await context.openStore();
      const { key, owner, ttlMs } = await context.acquire(store, context.newKey(), { ttlMs: LONG_TTL_MS });
      const thaw = await freeze();
      try {
        const requests = [
          store.renew(key, owner, ttlMs),
          context.tryAcquire(store, context.newKey()),
          store.release(key, context.newOwner()),
        ] as const;
        const settledRequests = Promise.allSettled(requests);
        await assertSettlesInTime('a request did not settle', settledRequests);
        const [renewal, attempt] = await settledRequests;
        assert.notEqual(renewal.status === 'fulfilled' && renewal.value, true, 'the store renewed by itself');
        assert.equal(attempt.status, 'rejected', 'the store answered for its server');
      } finally {
        await thaw();
      }
      const lock = await (await context.openService()).acquire(context.newKey());
      await lock.release();
    },

    'tells a holder of its loss by the end of its time to live': async (context) => {
      const [service, otherService] = [await context.openService(), await context.openService()];
      const key = context.newKey();
      const lock = await service.acquire(key);
      const lossReport = whenAborted(lock.signal);
      const thaw = await freeze();
      try {
        await assertSettlesInTime(
          'the holder was not told',
          lossReport,
          Math.min(context.harness.shortTtlMs + MAX_REPORT_DELAY_MS, MAX_WAIT_MS),
        );
        assert.equal(lock.isHeld, false, 'the holder trusts its lock');
      } finally {
        await thaw();
      }
      const nextLock = await otherService.acquire(key);
      assert.ok(nextLock.fencingToken > lock.fencingToken, 'the token did not grow');
      await nextLock.release();
    },
  };
}
