import assert from 'node:assert/strict';
import { inTime, LONG_TTL_MS, type Theme } from './trial.js';

export const closing: Theme = {
  'closes as often as it is told, and leaves other clients alone': async (trial) => {
    const [ours, theirs] = await trial.two();
    const key = trial.key();
    const { owner, ttlMs } = await trial.win(theirs, key, { ttlMs: LONG_TTL_MS });
    await Promise.all([ours.close(), ours.close()]);
    await ours.close();
    assert.equal(await theirs.renew(key, owner, ttlMs), true, 'another client has lost its key');
    assert.equal(await theirs.release(key, owner), true, 'another client has lost its key');
  },

  'settles all that is under way when it closes': async (trial) => {
    const store = await trial.store();
    const { key, owner, ttlMs } = await trial.win(store, trial.key());
    const requests = Array.from({ length: 10 }, () => [
      trial.ask(store, trial.key()),
      store.renew(key, owner, ttlMs),
      store.release(key, trial.owner()),
    ]).flat();
    const settled = Promise.allSettled(requests);
    await inTime('the store did not close', store.close());
    await inTime('a request did not settle', settled);
  },
};
