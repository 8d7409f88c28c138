import { jest } from '@jest/globals';
import { systemClock } from '../../../lib/core/time/timers.js';
import { eventually } from '../../support/eventually.js';
import { describeServers } from './sql-world.js';

/** Idle time of a connection after which it is not used again. */
const MAX_IDLE_MS = 30_000;
const SHORTENED_MS = 500;
/** Longer than all that the tests skip. */
const TTL_MS = 200_000;

/** A serverless database sleeps only when nobody has a connection open. */
describeServers('idle connections', (world, type) => {
  afterEach(() => void jest.restoreAllMocks());

  /** Makes timers for idle connections short. Returns the function that makes these connections old. */
  const shortenIdleTime = (): (() => void) => {
    const realClock = { ...systemClock };
    let skippedMs = 0;
    jest.spyOn(systemClock, 'now').mockImplementation(() => realClock.now() + skippedMs);
    jest
      .spyOn(systemClock, 'schedule')
      .mockImplementation((delayMs, ...rest) =>
        realClock.schedule(delayMs === MAX_IDLE_MS ? SHORTENED_MS : delayMs, ...rest),
      );
    return () => (skippedMs += MAX_IDLE_MS + 1);
  };

  it.each(['lease', 'row'] as const)(
    'are closed when nobody has locked for long, and opened again for the next lock: %s',
    async (strategy) => {
      const makeOld = shortenIdleTime();
      const service = world.service({ url: world.proxiedUrl, strategy });
      const lock = await service.acquire('k', { ttlMs: TTL_MS });
      await lock.release();
      expect(world.proxy.connections).toBeGreaterThan(0);
      makeOld();
      await eventually(() => world.proxy.connections === 0);
      expect(service.health.status).toBe('up');
      await (await service.acquire('k')).release();
    },
  );

  it('include the one that listened for waiters, and none that is used', async () => {
    const makeOld = shortenIdleTime();
    const [service, holder] = [world.service({ url: world.proxiedUrl }), world.service()];
    const held = await holder.acquire('k', { ttlMs: TTL_MS });
    const waiting = service.acquire('k', { waitMs: 10_000, ttlMs: TTL_MS });
    await eventually(() => world.proxy.connections > (type === 'postgres' ? 1 : 0));
    await held.release();
    const lock = await waiting;
    makeOld();
    await (await service.acquire('used')).release();
    await new Promise((resolve) => systemClock.schedule(2 * SHORTENED_MS, () => resolve(undefined)));
    expect(world.proxy.connections).toBeGreaterThan(0);
    await lock.release();
    makeOld();
    await eventually(() => world.proxy.connections === 0);
  });
});
