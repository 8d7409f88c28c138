import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { randomUUID } from 'node:crypto';
import { atLeastMs, eventually } from '../../support/index.js';
import { contend, describeRedis, win } from './redis-world.js';

describeRedis('redis, mode queue', (world) => {
  const patient = { waitMs: 20_000 };

  describe('costs', () => {
    it('two commands for an uncontended acquisition and its release', async () => {
      const service = world.service();
      await service.withLock('warm', () => undefined);
      const commands = await world.commandsDuring(() => service.withLock('key', () => undefined));
      expect(commands).toEqual(['evalsha', 'evalsha']);
    });

    it('one command to learn that a key is taken', async () => {
      const [a, b] = [world.service({ tracking: 'off' }), world.service()];
      await a.acquire('key');
      await b.withLock('warm', () => undefined);
      const commands = await world.commandsDuring(() => b.tryAcquire('key'));
      expect(commands).toEqual(['evalsha']);
    });

    it.each([
      [30_000, 3_700_000],
      [99_999, 3_700_000],
      [100_000, 13_600_000],
      [20_000_000, 23_600_000],
    ])('the memory of a token, after a lease of %i ms for %i ms', async (ttlMs, keptMs) => {
      const backend = world.backend();
      for (const mode of ['exclusive', 'shared'] as const) {
        const locks = world.closing(new LockService(() => backend));
        await (await locks.acquire(mode, { mode, ttlMs })).release();
        const leftMs = await world.operator.pttl(`lock:{${mode}}:f`);
        expect(leftMs).toBeGreaterThan(keptMs - 60_000);
        expect(leftMs).toBeLessThanOrEqual(keptMs + ttlMs / 100 + 100);
      }
    });

    it('one read to check a sequencer', async () => {
      const [ours, theirs] = [world.service({ tracking: 'off' }), world.service()];
      const shown = (await ours.acquire('key')).sequencer();
      await theirs.checkSequencer(shown);
      const commands = await world.commandsDuring(() => theirs.checkSequencer(shown));
      // After its first answer a client asks once for the server's settings, which may take a while.
      expect(commands.filter((command) => command !== 'info')).toEqual(['get']);
    });

    it('sends acquisitions before the end of the turn once there are 64 of them', async () => {
      const client = world.disconnecting(new Redis(world.server.url));
      const service = world.closing(new LockService(redis({ client })));
      await service.withLock('warm', () => undefined);
      const before = client.stream.bytesWritten;
      const acquire = (count: number) => Array.from({ length: count }, () => service.tryAcquire(randomUUID()));
      const first = acquire(63);
      expect(client.stream.bytesWritten).toBe(before);
      const last = acquire(1);
      expect(client.stream.bytesWritten).toBeGreaterThan(before);
      expect(await Promise.all([...first, ...last])).not.toContain(null);
    });

    it('four calls to renew a thousand leases', async () => {
      const backend = world.backend();
      const leases = await Promise.all(Array.from({ length: 1_000 }, (_, i) => win(backend, `key-${i}`)));
      await leases[0]?.renew();
      let renewed: boolean[] = [];
      const commands = await world.commandsDuring(async () => {
        renewed = await Promise.all(leases.map((lease) => lease.renew()));
      });
      expect(renewed).toEqual(leases.map(() => true));
      expect(commands).toEqual(['evalsha', 'evalsha', 'evalsha', 'evalsha']);
    });

    it('at most ten scripts in a third of the TTL, and a command before each, for a thousand locks that are held', async () => {
      const service = world.service();
      const ttlMs = atLeastMs(3_000);
      const locks = Array.from({ length: 1_000 }, (_, i) => service.acquire(`key-${i}`, { ttlMs }));
      const held = await Promise.all(locks);
      // The first renewals have the server track the keys, and come soon.
      await eventually(async () => expect(await world.operator.info('clients')).toMatch(/^tracking_clients:1/mu));
      await new Promise((resolve) => setTimeout(resolve, ttlMs / 3));
      const periods = 4;
      const commands = await world.commandsDuring(
        () => new Promise((resolve) => setTimeout(resolve, (periods * ttlMs) / 3)),
      );
      expect(held.every((lock) => lock.state === 'held')).toBe(true);
      const scripts = commands.filter((command) => command.startsWith('eval'));
      expect(scripts.length).toBeGreaterThanOrEqual(4 * (periods - 1));
      expect(scripts.length).toBeLessThanOrEqual(10 * periods);
      // One command before each has the server track the keys.
      expect(commands.length).toBeLessThanOrEqual(2 * scripts.length);
    });

    it('no connection for waking up until somebody waits', async () => {
      const service = world.service();
      await service.withLock('key', () => undefined);
      await expect(world.operator.pubsub('CHANNELS', 'lock:*')).resolves.toEqual([]);
    });
  });

  describe('keys and metadata are data', () => {
    it.each(['a}b', 'a{b}', '{', '}', '%7D', 'a}:q', 'a|b', '\n\r', "'; redis.call('FLUSHALL') --", '*', 'ü', '🔒'])(
      'R13: %j is locked, as itself and alone',
      async (key) => {
        const backend = world.backend();
        const lease = await win(backend, key);
        await expect(contend(backend, key)).resolves.toBeNull();
        for (const other of ['a', 'a}c', 'a%7Db', '%257D']) await (await win(backend, other)).release();
        await lease.release();
        await (await win(backend, key)).release();
      },
    );

    it('R13: all keys of a lock share its hash tag', async () => {
      const holder = await win(world.backend(), 'a}b{c');
      void contend(world.backend(), 'a}b{c', patient).catch(() => undefined);
      await eventually(async () => expect(await world.operator.keys('*')).toHaveLength(4));
      const tags = (await world.operator.keys('*')).map((name) => /\{(.*?)\}/.exec(name)?.[1]);
      expect(new Set(tags)).toEqual(new Set(['a%7Db%7Bc']));
      await holder.release();
    });

    it('a label with bars and quotes reaches who waits, through the queue too', async () => {
      const label = `a|b|"c"\\ \n ' ]] 🔒`;
      const metadata = { host: 'h|', pid: 7, label };
      const holder = await win(world.backend(), 'key');
      const next = win(world.backend(), 'key', { ...patient, metadata });
      await world.untilWaiting('key', 1);
      await holder.release();
      await next;
      const seen: unknown[] = [];
      await contend(world.backend(), 'key', { onBlocked: (by) => void seen.push(by) });
      expect(seen).toEqual([expect.objectContaining(metadata)]);
    });

    it('what a stranger wrote is a key that is taken, never ours', async () => {
      await world.operator.set('lock:{key}', 'not a lease');
      await expect(contend(world.backend(), 'key')).resolves.toBeNull();
      await expect(world.operator.get('lock:{key}')).resolves.toBe('not a lease');
    });
  });
});
