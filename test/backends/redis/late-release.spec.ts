import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { monitorRedis } from '../../servers/redis-monitor.js';
import { eventually } from '../../support/eventually.js';
import { contend, RedisWorld, win } from './redis-world.js';

const LATE = { awaitRelease: false };

describe.each(['queue', 'plain'] as const)('a release that nobody waits for, in mode %s', (mode) => {
  const world = RedisWorld.shared();

  /** The scripts that clients sent for `key`, by their owners' first argument: what released it, what asked for it. */
  const scriptsFor = async (key: string): Promise<{ readonly seen: string[] }> => {
    const seen: string[] = [];
    const monitor = await monitorRedis(world.server.port, ({ args, isOfScript }) => {
      const isScript = !isOfScript && /^eval(sha)?$/iu.test(String(args[0]));
      if (isScript && args.includes(`lock:{${key}}`)) seen.push(String(args[1]));
    });
    world.disconnecting(monitor);
    return { seen };
  };

  it('is sent when an observer of the end closes the service', async () => {
    let closed: Promise<void> | undefined;
    const failures: unknown[] = [];
    const backendFailed = (failure: unknown): void => void failures.push(failure);
    const locks = world.service({ mode });
    locks.observe({ released: () => void (closed = locks.close()), backendFailed });
    await locks.withLock('k', () => undefined);
    await closed;
    expect(await world.operator.exists('lock:{k}')).toBe(0);
    expect(failures).toEqual([]);
  });

  it.each(['waits already', 'asks afterwards'])(
    'is followed by the next caller, who %s, before it is answered',
    async (when) => {
      const proxy = await world.proxy();
      // However long no answer comes: a request that is overdue is sent again.
      const locks = world.service({ url: proxy.url, mode, requestTimeoutMs: 20_000 });
      await locks.withLock('warm-up', () => undefined);
      const { seen } = await scriptsFor('k');
      const next = { ttlMs: 20_000, ...LATE };
      const ask = (): Promise<unknown> => locks.withLock('k', () => undefined, next);
      const first = locks.withLock('k', () => proxy.pause('down'), LATE);
      const waiting = when === 'waits already' ? ask() : undefined;
      await first;
      const second = waiting ?? ask();
      // Not an answer has come since the work ended, and the server has got both.
      await eventually(() => expect(seen).toHaveLength(3));
      const [acquire, release] = seen;
      expect(seen).toEqual([acquire, release, acquire]);
      expect(release).not.toBe(acquire);
      proxy.resume();
      await second;
      expect(await eventually(() => seen.length === 4)).toBe(true);
    },
  );

  it('passes the lease on to nobody when the service closes in the same turn', async () => {
    const locks = world.service({ mode });
    const first = await locks.acquire('k');
    const second = expect(locks.acquire('k')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    void first.release();
    await locks.close();
    await second;
    expect(await world.operator.exists('lock:{k}')).toBe(0);
  });

  it('costs two commands a cycle, each release before the next acquisition', async () => {
    const locks = world.service({ mode });
    await locks.withLock('k', () => undefined);
    const { seen } = await scriptsFor('k');
    for (let i = 0; i < 100; i += 1) await locks.withLock('k', () => undefined, LATE);
    await locks.close();
    await eventually(() => expect(seen).toHaveLength(200));
    const [acquire, release] = seen;
    expect(seen).toEqual(Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? acquire : release)));
  });

  it('goes out before every acquisition that was asked for after it, however many there are', async () => {
    const backend = world.backend({ mode });
    const lease = await win(backend, 'k');
    const released = lease.release();
    const [next] = await Promise.all(Array.from({ length: 120 }, (_, i) => contend(backend, i === 0 ? 'k' : `k${i}`)));
    await released;
    expect(next).not.toBeNull();
  });

  it('hurts nobody where the server has forgotten its scripts', async () => {
    const failures: unknown[] = [];
    const services = [1, 2].map(() =>
      world.closing(
        new LockService(redis({ url: world.server.url, mode }), {
          defaults: { ...LATE, waitMs: 20_000 },
          maxHandOffs: 0,
          observers: [{ backendFailed: (event) => failures.push(event) }],
        }),
      ),
    );
    let [inside, most, visits] = [0, 0, 0];
    const visit = (service: LockService): Promise<void> =>
      service.withLock('k', async () => {
        most = Math.max(most, (inside += 1));
        visits += 1;
        await world.operator.script('FLUSH');
        inside -= 1;
      });
    await Promise.all(services.flatMap((service) => Array.from({ length: 15 }, () => visit(service))));
    await Promise.all(services.map((service) => service.close()));
    expect({ most, visits, failures }).toEqual({ most: 1, visits: 30, failures: [] });
    expect(await world.operator.exists('lock:{k}', 'lock:{k}:q', 'lock:{k}:w')).toBe(0);
  });
});
