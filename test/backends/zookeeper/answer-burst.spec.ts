import { eventually, timeLimitOf, describeWanted } from '../../support/index.js';
import { ZookeeperWorld } from './zookeeper-world.js';

/** More answers than the library read from one chunk before its recursion exhausted the stack: some 3,000. */
const KEYS = 4_000;
const SESSION_MS = 60_000;

describeWanted(['zookeeper'], '%s:', () => {
  const world = ZookeeperWorld.shared({ sessionTtlMs: SESSION_MS, requestTimeoutMs: SESSION_MS / 3 });

  it(
    'thousands of answers that arrive at once end no process',
    async () => {
      const { proxy, service } = await world.proxied();
      const keys = Array.from({ length: KEYS }, () => world.key());
      const locks = await Promise.all(
        keys.map((key) => service.acquire(key, { ttlMs: SESSION_MS, waitMs: SESSION_MS })),
      );
      proxy.pause('down');
      const releases = Promise.all(locks.map((lock) => lock.release()));
      const lastKey = keys.at(-1) ?? '';
      await eventually(async () => expect(await world.queue(lastKey).catch(() => [])).toEqual([]), {
        withinMs: SESSION_MS / 4,
      });
      proxy.resume();
      await releases;
      await service.withLock(world.key(), () => undefined);
    },
    timeLimitOf(5 * SESSION_MS),
  );
});
