import { expect, it } from '@jest/globals';
import { Gate, throughout } from '../conformance/contract.js';
import { ProxiedRedis } from '../faults/proxied-redis.js';
import { redisHarness } from '../support/harness-redis.js';
import { describeBackend } from './describe-backend.js';

describeBackend('redis-getset', redisHarness('getset'), () => {
  it('gives an expired lease to one of two who found it, though the other writes over the name of the first', async () => {
    await using world = await ProxiedRedis.start('getset');
    const slow = await world.proxied();
    const dead = await world.direct().acquire('k', { ttlMs: 100, watchdog: false });
    const onItsWay = new Gate();
    const stopLooking = world.proxy.onRequest((chunk) => {
      if (!/getset/i.test(chunk.toString('latin1'))) return;
      stopLooking();
      world.proxy.pause('up');
      onItsWay.open();
    });
    const second = slow.acquire('k', { ttlMs: 1_000, waitMs: 10_000 });
    await onItsWay.opened;
    expect(dead.isHeld).toBe(false);
    const first = await world.direct().acquire('k', { ttlMs: 1_000, waitMs: 5_000 });
    world.proxy.resume();
    let secondIsHeld = false;
    void second.then(() => (secondIsHeld = true));
    await throughout(500, () => expect(first.isHeld && secondIsHeld).toBe(false));
    await (await second).release();
  });
});
