import { describeRedis } from './redis-world.js';

describeRedis('a transfer on Redis', (world) => {
  it('leaves no key without an end, whatever the TTLs', async () => {
    const locks = world.service();
    for (const ttlMs of [5_000, 20_000, 90_000]) {
      const key = `permit-${ttlMs}`;
      const permit = await locks.acquire(key, { limit: 2, ttlMs: 10_000 });
      const ticket = await permit.transfer({ withinMs: 60_000 });
      const adopted = await locks.adopt(ticket, { ttlMs, watchdog: false });
      const names = await world.operator.keys(`lock:{${key}}*`);
      expect(names).toContain(`lock:{${key}}:s`);
      const times = await Promise.all(names.map((name) => world.operator.pttl(name)));
      expect(Math.min(...times)).toBeGreaterThan(0);
      await adopted.release();
      expect(await world.operator.exists(`lock:{${key}}`)).toBe(0);
    }
  });
});
