import assert from 'node:assert/strict';
import { isLockError } from '../core/index.js';
import { aborted, inTime, LONG_TTL_MS, type Theme } from './trial.js';

/** A lease that somebody took away on the server. */
export function revocation(revoke: (key: string) => Promise<void> | void): Theme {
  return {
    'says of a lease that was taken away that it is, and does not bring it back': async (trial) => {
      const { ours, theirs, key } = await trial.scene();
      const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
      await revoke(key);
      const present = await trial.winSoon(theirs, key, { ttlMs: LONG_TTL_MS });
      assert.ok(present.token > former.token, `token ${present.token} came after ${former.token}`);
      assert.equal(await ours.renew(key, former.owner, LONG_TTL_MS), false, 'a former owner renewed');
      assert.equal(await ours.release(key, former.owner), false, 'a former owner released');
      assert.equal(await theirs.release(key, present.owner), true, 'the present owner has lost the key');
    },

    'tells a holder whose lease was taken away of its loss with the next renewal': async (trial) => {
      const service = await trial.service();
      const key = trial.key();
      const lock = await service.acquire(key);
      const told = aborted(lock.signal);
      await revoke(key);
      await inTime('the holder was not told', told);
      assert.ok(isLockError(lock.signal.reason, 'LOCK_LOST'));
      assert.equal(lock.isHeld, false, 'the holder trusts its lock');
    },
  };
}
