import assert from 'node:assert/strict';
import { LONG_TTL_MS, type Theme, throughout } from './trial.js';

export const renewing: Theme = {
  'prolongs a lease by renewals': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { owner, ttlMs, sentAt } = await trial.win(ours, key);
    await throughout(sentAt + ttlMs * 2.5, async () => {
      assert.equal(await ours.renew(key, owner, ttlMs), true, 'the holder could not renew');
      await trial.lose(theirs, key);
    });
    assert.equal(await ours.release(key, owner), true, 'the holder had lost the key');
  },

  'renews nothing that was released, or was never there': async (trial) => {
    const [ours, theirs] = await trial.two();
    const [never, released] = [trial.key(), trial.key()];
    assert.equal(await ours.renew(never, trial.owner(), LONG_TTL_MS), false, 'a renewal made a lease');
    await trial.win(theirs, never);
    const { owner } = await trial.win(ours, released);
    await ours.release(released, owner);
    assert.equal(await ours.renew(released, owner, LONG_TTL_MS), false, 'a renewal brought a lease back');
    await trial.win(theirs, released);
  },

  'renews for nobody but the owner': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { owner, ttlMs } = await trial.win(ours, key);
    for (const store of [ours, theirs]) {
      assert.equal(await store.renew(key, trial.owner(), LONG_TTL_MS), false, 'a stranger renewed');
    }
    assert.equal(await ours.renew(key, owner, ttlMs), true, 'the holder has lost the key to a renewal');
    if ((ours.traits?.endsWith ?? 'ttl') !== 'ttl') return;
    // Free before the end of what the stranger asked for.
    await trial.winSoon(theirs, key);
  },

  'tells whether an owner has a key, where it can tell, and changes nothing by that': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { owner } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    assert.equal((await theirs.isHeldBy?.(key, owner)) ?? true, true, 'the owner has the key');
    for (const [k, o] of [
      [key, trial.owner()],
      [trial.key(), owner],
      [`${key}*`, owner],
      [`${key}' or ''='`, 'nobody: 1/2 or @all --'],
    ] as const) {
      assert.equal((await theirs.isHeldBy?.(k, o)) ?? false, false, `${JSON.stringify(o)} has no such key`);
    }
    await ours.release(key, owner);
    assert.equal((await theirs.isHeldBy?.(key, owner)) ?? false, false, 'the owner has released the key');
    await trial.win(theirs, key);
  },
};
