import { Redis } from 'ioredis';
import { type LockService, singleFlight } from 'nestjs-distributed-lock/core';
import { describeRedis } from './redis-world.js';

const CALLERS = 300;
const PROCESSES = 3;

describeRedis('single flight on Redis', (world) => {
  const connect = (): { locks: LockService; cache: Redis } => ({
    locks: world.service(),
    cache: world.disconnecting(new Redis(world.server.url)),
  });

  // https://github.com/jaredwray/cacheable/issues/1201: a stampede between pods, each of which ran the work once.
  it(`runs the work once for ${CALLERS} callers of ${PROCESSES} processes, and again when the value is gone`, async () => {
    const processes = Array.from({ length: PROCESSES }, connect);
    const callAll = (): Promise<string[]> =>
      Promise.all(
        Array.from({ length: CALLERS / PROCESSES }, () => processes)
          .flat()
          .map(({ locks, cache }) =>
            singleFlight(locks, 'report', {
              read: () => cache.get('cached:report'),
              work: async () => {
                const run = await cache.incr('runs');
                await new Promise((resolve) => setTimeout(resolve, 50));
                return `run ${run}`;
              },
              write: (value) => cache.set('cached:report', value),
            }),
          ),
      );
    expect(new Set(await callAll())).toEqual(new Set(['run 1']));
    expect(new Set(await callAll())).toEqual(new Set(['run 1']));
    await world.operator.del('cached:report');
    const values = await callAll();
    expect(values).toHaveLength(CALLERS);
    expect(new Set(values)).toEqual(new Set(['run 2']));
    expect(await world.operator.get('runs')).toBe('2');
  });
});
