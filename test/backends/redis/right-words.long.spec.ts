import { RedisWorld } from './redis-world.js';
import { timeLimitOf } from '../../support/machine.js';

describe.each(['plain', 'queue'] as const)('contention and failure on Redis (%s)', (mode) => {
  const world = RedisWorld.shared();

  it('are told apart when an answer takes 150 ms: a key that is held is a time-out', async () => {
    const holder = world.service({ mode });
    const proxy = await world.proxy();
    const locks = world.service({ mode, url: proxy.url });
    await (await locks.acquire('warm-up')).release();
    await using _held = await holder.acquire('k');
    proxy.delay(75);
    const waits = Array.from({ length: 12 }, (_, i) =>
      world.service({ mode, url: proxy.url }).acquire('k', { waitMs: timeLimitOf(2_000) + 23 * i }),
    );
    for (const outcome of await Promise.allSettled(waits)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_TIMEOUT' } });
    }
  });

  it('are told apart when the server is dead: every caller of one key hears that, and none that it is held', async () => {
    const proxy = await world.proxy();
    const locks = world.service({ mode, url: proxy.url });
    await (await locks.acquire('warm-up')).release();
    proxy.drop();
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => locks.acquire('k')));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_BACKEND' } });
    }
    proxy.resume();
  });
});
