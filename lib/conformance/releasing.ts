import assert from 'node:assert/strict';
import { LONG_TTL_MS, type Theme } from './trial.js';

export const releasing: Theme = {
  'frees a key for every client as soon as its release is answered': async (trial) => {
    const [ours, theirs] = await trial.two();
    const key = trial.key();
    const { owner } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await ours.release(key, owner), true, 'the owner could not release');
    await trial.win(theirs, key);
  },

  'changes nothing when a stranger releases, and says false': async (trial) => {
    const [ours, theirs] = await trial.two();
    const key = trial.key();
    const { owner, ttlMs } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    for (const store of [ours, theirs]) {
      assert.equal(await store.release(key, trial.owner()), false, 'a stranger released the key');
      assert.equal(await store.release(trial.key(), trial.owner()), false, 'a key was released that nobody had');
    }
    assert.equal(await ours.renew(key, owner, ttlMs), true, 'the holder has lost the key to a stranger');
    await trial.lose(theirs, key);
  },

  'changes nothing when a former owner releases again, and says false': async (trial) => {
    const [ours, theirs] = await trial.two();
    const key = trial.key();
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    await ours.release(key, former.owner);
    assert.equal(await ours.release(key, former.owner), false, 'a key was released twice');
    const present = await trial.win(theirs, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await ours.release(key, former.owner), false, 'a former owner released the key');
    await trial.lose(ours, key);
    assert.equal(await theirs.release(key, present.owner), true, 'the present owner has lost the key');
  },
};
