import assert from 'node:assert/strict';
import type { LeaseStoreHarness } from './harness.js';
import { aborted, inTime, LONG_TTL_MS, PATIENCE_MS, type Theme } from './trial.js';

const SLACK_MS = 500;

/** A server that keeps its connections, and does not answer. */
export function silence(freeze: NonNullable<LeaseStoreHarness['freeze']>): Theme {
  return {
    'says of no answer that it is none, in time, and goes on when the server answers again': async (trial) => {
      const store = await trial.store();
      const { key, owner, ttlMs } = await trial.win(store, trial.key(), { ttlMs: LONG_TTL_MS });
      const thaw = await freeze();
      try {
        const requests = [
          store.renew(key, owner, ttlMs),
          trial.ask(store, trial.key()),
          store.release(key, trial.owner()),
        ] as const;
        const settled = Promise.allSettled(requests);
        await inTime('a request did not settle', settled);
        const [renewal, question] = await settled;
        assert.notEqual(renewal.status === 'fulfilled' && renewal.value, true, 'the store renewed by itself');
        assert.equal(question.status, 'rejected', 'the store answered for its server');
      } finally {
        await thaw();
      }
      const lock = await (await trial.service()).acquire(trial.key());
      await lock.release();
    },

    'tells a holder of its loss by the end of its time to live': async (trial) => {
      const [ours, theirs] = [await trial.service(), await trial.service()];
      const key = trial.key();
      const lock = await ours.acquire(key);
      const told = aborted(lock.signal);
      const thaw = await freeze();
      try {
        await inTime('the holder was not told', told, Math.min(trial.harness.shortTtlMs + SLACK_MS, PATIENCE_MS));
        assert.equal(lock.isHeld, false, 'the holder trusts its lock');
      } finally {
        await thaw();
      }
      const next = await theirs.acquire(key);
      assert.ok(next.fencingToken > lock.fencingToken, 'the token did not grow');
      await next.release();
    },
  };
}
