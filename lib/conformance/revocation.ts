import assert from 'node:assert/strict';
import { isLockError } from '../core/index.js';
import { whenAborted, assertSettlesInTime, LONG_TTL_MS, type CheckGroup } from './check-context.js';

export function createRevocationChecks(revoke: (key: string) => Promise<void> | void): CheckGroup {
  return {
    'says of a lease that was taken away that it is, and does not bring it back': async (context) => {
      const { store, otherStore, key } = await context.openTwoStoresAndKey();
      const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
      await revoke(key);
      const presentGrant = await context.acquireEventually(otherStore, key, { ttlMs: LONG_TTL_MS });
      assert.ok(presentGrant.token > formerGrant.token, `token ${presentGrant.token} came after ${formerGrant.token}`);
      assert.equal(await store.renew(key, formerGrant.owner, LONG_TTL_MS), false, 'a former owner renewed');
      assert.equal(await store.release(key, formerGrant.owner), false, 'a former owner released');
      assert.equal(await otherStore.release(key, presentGrant.owner), true, 'the present owner has lost the key');
    },

    'tells a holder whose lease was taken away of its loss with the next renewal': async (context) => {
      const service = await context.openService();
      const key = context.newKey();
      const lock = await service.acquire(key);
      const lossReport = whenAborted(lock.signal);
      await revoke(key);
      await assertSettlesInTime('the holder was not told', lossReport);
      assert.ok(isLockError(lock.signal.reason, 'LOCK_LOST'));
      assert.equal(lock.isHeld, false, 'the holder trusts its lock');
    },
  };
}
