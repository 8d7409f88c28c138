import { Redis } from 'ioredis';
import { type Caller, type Clock, Deadline, LockService, systemClock } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { createGivenClientSource, createUrlSource } from '../../../lib/backends/redis/connection/client-sources.js';
import type { ClientSource } from '../../../lib/backends/redis/connection/redis-client.js';
import { RedisConnection } from '../../../lib/backends/redis/connection/redis-connection.js';
import { eventually, timeLimitOf } from '../../support/index.js';
import { describeRedis } from './redis-world.js';

/** Commands that may be under way on a connection. */
const WINDOW = 500;

describeRedis('what waits here until it can be sent', (world) => {
  const scriptsRun = async (): Promise<number> => {
    const stats = await world.server.commandStats();
    return (stats.get('eval') ?? 0) + (stats.get('evalsha') ?? 0);
  };

  it('is never sent when it was given up, and leaves nothing to take back', async () => {
    const proxy = await world.proxy();
    const locks = world.service({ url: proxy.url, requestTimeoutMs: 20_000 });
    await locks.withLock('warm-up', () => undefined);
    const before = await scriptsRun();
    proxy.pause();
    const asked = Array.from({ length: 3 * WINDOW }, (_, i) => locks.acquire(`key-${i}`, { waitMs: 300 }));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(3 * WINDOW);
    proxy.resume();
    await eventually(async () => expect(await world.operator.keys('lock:{*}')).toEqual([]));
    // The request that was under way, and its clean-up.
    expect((await scriptsRun()) - before).toBeLessThanOrEqual(2 * WINDOW);
    await expect(locks.withLock('key', () => 'in')).resolves.toBe('in');
  });

  it('goes in the order of the calls, but for what keeps or frees a lease', async () => {
    const connection = world.closing(new RedisConnection(createUrlSource(world.server.url), 1_000));
    const caller = { deadline: Deadline.after(Infinity), onSend: () => true };
    const order: string[] = [];
    const ping = (name: string, by?: Caller) =>
      connection.send('', { commands: [['PING']], read: () => order.push(name), caller: by });
    await Promise.all([ping('first lease', caller), ping('second lease', caller), ping('renewal'), ping('release')]);
    expect(order).toEqual(['renewal', 'release', 'first lease', 'second lease']);
  });

  it('asks again with all waiters of its process in a few commands', async () => {
    const [holder, waiting] = [world.service(), world.service()];
    const whole = await holder.acquire('key', { limit: 100, permits: 100 });
    const acquisitions = Array.from({ length: 100 }, () => waiting.acquire('key', { limit: 100 }));
    await world.untilWaiting('key', 100);
    const [entriesBefore, scriptsBefore] = [await world.operator.hgetall('lock:{key}:w'), await scriptsRun()];
    await eventually(async () => {
      const entries = await world.operator.hgetall('lock:{key}:w');
      const owners = Object.keys(entries).filter((owner) => owner !== '');
      expect(owners.filter((owner) => entries[owner] === entriesBefore[owner])).toEqual([]);
    });
    expect((await scriptsRun()) - scriptsBefore).toBeLessThanOrEqual(10);
    await whole.release();
    for (const lock of await Promise.all(acquisitions)) await lock.release();
  });

  it('has a server learn a script once in a write, however many need it', async () => {
    const locks = world.service();
    await world.untilKeysShareCommands(locks);
    await world.operator.script('FLUSH');
    const before = (await world.server.commandStats()).get('eval') ?? 0;
    const held = await Promise.all(Array.from({ length: 100 }, (_, i) => locks.acquire(`key-${i}`)));
    // Once for each write: the server's refusals may arrive in a few pieces.
    expect(((await world.server.commandStats()).get('eval') ?? 0) - before).toBeLessThanOrEqual(10);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('does not pile up in a given client that is not connected', async () => {
    const client = world.disconnecting(
      new Redis(world.server.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 }),
    );
    client.on('error', () => undefined);
    const locks = world.closing(new LockService(redis({ client, requestTimeoutMs: timeLimitOf(100) })));
    await locks.withLock('warm-up', () => undefined);
    await world.server.kill();
    await eventually(() => expect(client.status).not.toBe('ready'));
    for (let i = 0; i < 20; i += 1) {
      const asked = Array.from({ length: 10 }, (_, j) => locks.acquire(`key-${i}-${j}`, { waitMs: 50 }));
      await Promise.allSettled(asked);
    }
    await world.server.restart({ empty: true });
    await expect(locks.withLock('key', () => 'in')).resolves.toBe('in');
    // For the last lock: acquire and release, each unknown to the new server at first.
    expect(await scriptsRun()).toBeLessThanOrEqual(4);
  });

  it('does not pile up in a given client whose server says nothing', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    const timeoutMs = timeLimitOf(300);
    const connection = world.closing(new RedisConnection(createGivenClientSource(client), timeoutMs));
    const pings = (await world.server.commandStats()).get('ping') ?? 0;
    await connection.sendCommand('PING');
    await world.server.whileFrozen(async () => {
      for (let i = 0; i < 10; i += 1) {
        await expect(connection.sendCommand('PING')).rejects.toThrow(`no answer within ${timeoutMs} ms`);
      }
    });
    await eventually(() => expect(connection.health.current.status).toBe('up'));
    await expect(connection.sendCommand('PING')).resolves.toBe('PONG');
    // The proof of the client's replies, the first, one that was given up when it had been sent, the one that asked for a
    // sign of life, and the last.
    expect((await world.server.commandStats()).get('ping')).toBe(pings + 5);
  });

  it('is not taken for silence, however long it waits, while answers come', async () => {
    const connection = world.closing(new RedisConnection(createUrlSource(world.server.url), timeLimitOf(600)));
    await connection.sendCommand('PING');
    // Each takes the server some milliseconds, and all together several times as long as one may. It answers what it has read
    // at once together, hence the ballast.
    const ballast = 'x'.repeat(65_536);
    const slow = ['EVAL', "for i = 1, 50000 do redis.call('PING') end return 1", 0, ballast] as const;
    const states: string[] = [];
    connection.health.onChange(({ status }) => states.push(status));
    const answers = await Promise.all(Array.from({ length: 80 }, () => connection.sendCommand(...slow)));
    expect(answers).toEqual(answers.map(() => 1));
    expect(states).toEqual([]);
  });
});

describeRedis('a connection', (world) => {
  it('that could not be opened is opened by the next question', async () => {
    const there = createUrlSource(world.server.url);
    let failures = 1;
    const source: ClientSource = {
      makeClient: () => {
        failures -= 1;
        return failures < 0 ? there.makeClient() : Promise.reject(new Error('not yet'));
      },
    };
    const connection = world.closing(new RedisConnection(source, 1_000));
    await expect(connection.sendCommand('PING')).rejects.toThrow('not yet');
    await expect(connection.sendCommand('PING')).resolves.toBe('PONG');
  });

  it('that a firewall has forgotten while it was idle is noticed before it is used', async () => {
    const proxy = await world.proxy();
    let idleMs = 0;
    const clock: Clock = {
      now: () => performance.now() + idleMs,
      schedule: (...timer) => systemClock.schedule(...timer),
    };
    const connection = world.closing(new RedisConnection(createUrlSource(proxy.url), 2_000, clock));
    await connection.sendCommand('PING');
    proxy.forget();
    idleMs = 60_000;
    await expect(connection.sendCommand('PING')).resolves.toBe('PONG');
    expect(connection.health.current).toEqual({ status: 'up' });
  });
});
