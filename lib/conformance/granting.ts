import assert from 'node:assert/strict';
import { type LeaseStore, trustedUntil } from '../core/index.js';
import { LONG_TTL_MS, PATIENCE_MS, soon, type Theme, throughout, type Trial, type Won, wonBy } from './trial.js';

const CLIENTS = 5;
const CONTENDERS = 50;
const ROUNDS = 5;
const TOKEN_END = 2n ** 52n;

export const granting: Theme = {
  'grants a free key, with a token from 1 to below 2^52': async (trial) => {
    const { token } = await trial.win(await trial.store(), trial.key());
    assert.equal(typeof token, 'bigint', 'a fencing token is a bigint');
    assert.ok(token > 0n && token < TOKEN_END, `the token was ${token}`);
  },

  'refuses a key that another owner has, and says how much of the lease is left, or null': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { ttlMs } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    for (const store of [ours, theirs]) {
      const { attempt } = await trial.ask(store, key);
      assert.ok(!attempt.acquired, 'two owners have the key');
      const { retryAfterMs, holder } = attempt;
      assert.ok(
        retryAfterMs === null || (retryAfterMs >= 0 && retryAfterMs <= ttlMs + 1_000),
        `retryAfterMs was ${retryAfterMs} under a lease of ${ttlMs} ms`,
      );
      assert.equal(holder?.pid ?? process.pid, process.pid, 'the holder is somebody else');
    }
  },

  'grants a key to one of fifty who ask at the same time, over five clients': async (trial) => {
    const stores = await Promise.all(Array.from({ length: CLIENTS }, () => trial.store()));
    const key = trial.key();
    let last = 0n;
    for (let round = 0; round < ROUNDS; round += 1) {
      const { store, owner, token } = await soon('nobody was granted a free key', () => contest(trial, stores, key));
      assert.ok(token > last, `token ${token} came after ${last}`);
      last = token;
      assert.equal(await store.release(key, owner), true, 'the winner could not release');
    }
  },

  'grants the key again to the owner who has it, with a full time to live and no lesser token': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const first = await trial.win(ours, key);
    const { owner, token, sentAt, ttlMs } = await trial.win(ours, key, { owner: first.owner, ttlMs: LONG_TTL_MS });
    assert.ok(token >= first.token, `token ${token} came after ${first.token}`);
    // A session has no more time than before, and some of it is left for the release.
    const end = Math.min(first.answeredAt + first.ttlMs * 1.5, sentAt + ttlMs * 0.7);
    await throughout(end, () => trial.lose(theirs, key));
    assert.equal(await ours.release(key, owner), true, 'one release has to do');
    await trial.win(theirs, key);
  },

  'gives every acquisition a greater token, whichever client asks': async (trial) => {
    const stores = await trial.two();
    const key = trial.key();
    let last = 0n;
    for (const store of Array.from({ length: 10 }, () => stores).flat()) {
      const { owner, token } = await trial.win(store, key);
      assert.ok(token > last, `token ${token} came after ${last}`);
      last = token;
      await store.release(key, owner);
    }
  },

  'keeps a key for its time to live, frees it when its holder is gone, and raises the token': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const former = await trial.win(ours, key);
    const present = await afterDeath(trial, former, theirs);
    assert.ok(present.token > former.token, `token ${present.token} came after ${former.token}`);
    const third = await trial.store();
    assert.equal((await third.isHeldBy?.(key, former.owner)) ?? false, false, 'a former owner has the key');
    assert.equal(await third.renew(key, former.owner, former.ttlMs), false, 'a former owner renewed');
    assert.equal(await third.release(key, former.owner), false, 'a former owner released');
    await trial.lose(third, key);
    assert.equal(await theirs.release(key, present.owner), true, 'the present owner has lost the key');
  },

  'takes a time to live in fractions of a millisecond, and the longest that there is': async (trial) => {
    const [ours, theirs] = await trial.two();
    for (const ttlMs of [LONG_TTL_MS + 0.123_456, 2 ** 31 - 1]) {
      const key = trial.key();
      const lease = await trial.win(ours, key, { ttlMs });
      await trial.lose(theirs, key, { ttlMs });
      assert.equal(await ours.renew(key, lease.owner, lease.ttlMs), true, `no renewal for ${lease.ttlMs} ms`);
      assert.equal(await ours.release(key, lease.owner), true, 'the owner could not release');
    }
  },
};

/** All ask at once. Nobody may be granted the key, but never two. */
async function contest(trial: Trial, stores: readonly LeaseStore[], key: string): Promise<Won | undefined> {
  const asking = Array.from({ length: CONTENDERS / CLIENTS }, () => stores).flat();
  const answers = await Promise.all(asking.map((store) => trial.ask(store, key, { ttlMs: LONG_TTL_MS })));
  const winners = answers.map(wonBy).filter((won) => won !== undefined);
  assert.ok(winners.length <= 1, `${winners.length} owners have the key at the same time`);
  return winners[0];
}

/** The lease of the next, when the holder has renewed no more, and its session, if there are sessions, is over. */
async function afterDeath(trial: Trial, former: Won, next: LeaseStore): Promise<Won> {
  const { store, key } = former;
  const bySession = (store.traits?.endsWith ?? 'ttl') !== 'ttl';
  if (bySession) await store.close();
  assert.ok(former.ttlMs < PATIENCE_MS, `shortTtlMs is ${former.ttlMs}, too long for these checks`);
  const present = await trial.winSoon(next, key, { ttlMs: LONG_TTL_MS });
  if (!bySession) assertKept(former, present.answeredAt);
  return present;
}

/** The next owner comes when the core trusts the lease of the former one no more. */
function assertKept({ sentAt, ttlMs }: Won, nextAt: number): void {
  assert.ok(nextAt >= trustedUntil(sentAt, ttlMs), `a lease of ${ttlMs} ms ended after ${nextAt - sentAt} ms`);
}
