import assert from 'node:assert/strict';
import { inTime, LONG_TTL_MS, type Theme } from './trial.js';

export const releasing: Theme = {
  'frees a key for every client as soon as its release is answered': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { owner } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await ours.release(key, owner), true, 'the owner could not release');
    await trial.win(theirs, key);
  },

  'changes nothing when a stranger releases, and says false': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { owner, ttlMs } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    for (const store of [ours, theirs]) {
      assert.equal(await store.release(key, trial.owner()), false, 'a stranger released the key');
      assert.equal(await store.release(trial.key(), trial.owner()), false, 'a key was released that nobody had');
    }
    assert.equal(await ours.renew(key, owner, ttlMs), true, 'the holder has lost the key to a stranger');
    await trial.lose(theirs, key);
  },

  'changes nothing when a former owner releases again, and says false': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    await ours.release(key, former.owner);
    assert.equal(await ours.release(key, former.owner), false, 'a key was released twice');
    const present = await trial.win(theirs, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await ours.release(key, former.owner), false, 'a former owner released the key');
    await trial.lose(ours, key);
    assert.equal(await theirs.release(key, present.owner), true, 'the present owner has lost the key');
  },

  'closes as often as it is told, and leaves other clients alone': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
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
