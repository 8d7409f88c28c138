import { Gate, throughout } from '../../conformance/contract.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { ProxiedBackend } from '../../faults/proxied-backend.js';
import { redisHarness } from './harness.js';
import { describeBackend } from '../describe-backend.js';

describeBackend('redis-getset', () => {
  describeOnBackend('two who find an expired lease', redisHarness('getset'), (contract) => {
    it('are one holder, though the second writes over the name of the first', async () => {
      await using world = await ProxiedBackend.start(contract);
      const [slow, quick, key] = [await world.proxied(), await contract.service(), contract.key()];
      const { shortTtlMs: ttlMs } = contract.harness;
      const dead = await quick.acquire(key, { ttlMs, watchdog: false });
      const onItsWay = new Gate();
      const stopLooking = world.proxy.onRequest((chunk) => {
        if (!/getset/i.test(chunk.toString('latin1'))) return;
        stopLooking();
        world.proxy.pause('up');
        onItsWay.open();
      });
      const second = slow.acquire(key, { ttlMs, waitMs: 60_000 });
      await onItsWay.opened;
      expect(dead.isHeld).toBe(false);
      const first = await quick.acquire(key, { ttlMs, waitMs: 60_000 });
      world.proxy.resume();
      let secondIsHeld = false;
      void second.then(() => (secondIsHeld = true));
      await throughout(500, () => expect(first.isHeld && secondIsHeld).toBe(false));
      await (await second).release();
    });
  });
});
