import { type LockHandle, pause, systemClock } from 'nestjs-distributed-lock/core';
import { eventually, timeLimitOf } from '../../support/index.js';
import { describeRedis } from './redis-world.js';

const LOCKS = 8_000;
const TTL_MS = Math.min(timeLimitOf(10_000), 30_000);
/** Past the first renewals, and past the first of their retries. */
const FROZEN_MS = TTL_MS * 0.45;
/** 8,000 locks are 32 requests of 250 keys: some ten rounds of them, where one for each retry would be 8,000. */
const MAX_SCRIPTS = 400;

describeRedis('a Redis that is frozen for a while', (world) => {
  it('costs none of many locks, and is asked again in as few requests as before', async () => {
    const locks = world.service();
    const handles: LockHandle[] = [];
    while (handles.length < LOCKS) {
      const next = Array.from({ length: 250 }, (_, i) => locks.acquire(`k${handles.length + i}`, { ttlMs: TTL_MS }));
      handles.push(...(await Promise.all(next)));
    }
    const scriptsBefore = await scripts();
    world.server.freeze();
    await pause(systemClock, FROZEN_MS);
    expect(handles.filter(({ state }) => state === 'jeopardy').length).toBeGreaterThan(LOCKS / 2);
    world.server.thaw();
    await eventually(() => handles.every(({ state }) => state === 'held'), { withinMs: TTL_MS, everyMs: 50 });
    await pause(systemClock, TTL_MS / 2);
    expect(handles.filter(({ isHeld }) => !isHeld)).toHaveLength(0);
    expect((await scripts()) - scriptsBefore).toBeLessThan(MAX_SCRIPTS);
  });

  const scripts = async (): Promise<number> => {
    const counts = await world.server.commandStats();
    return (counts.get('evalsha') ?? 0) + (counts.get('eval') ?? 0);
  };
});
