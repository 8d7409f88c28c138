import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { inspect } from 'node:util';
import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { redis, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { askRedis, endAfterEach, eventually, FaultProxy, freePort, timeLimitOf } from '../../support/index.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';

const LONG = { ttlMs: 60_000, waitMs: 20_000 };

describe('under Sentinel', () => {
  let set: RedisSentinels;
  const endLater = endAfterEach((end: () => unknown) => end());
  beforeAll(async () => {
    set = await RedisSentinels.start();
  });
  afterAll(() => set.stop());

  function connect(options: object = {}, settings: LockServiceOptions = {}): LockService {
    const service = new LockService(redis({ sentinels: set.addresses, name: set.name, ...options }), settings);
    endLater(() => service.close(1_000));
    return service;
  }

  it.each([
    ['6', () => new Redis({ sentinels: set.addresses, name: set.name })],
    ['5', () => new Redis5({ sentinels: set.addresses, name: set.name })],
  ])('a client that was given stays as it was (ioredis %s)', async (_version, make) => {
    const client = make();
    endLater(() => client.disconnect());
    const options: RedisOptions = { client };
    const [a, b] = [new LockService(redis(options)), new LockService(redis(options))];
    const first = await a.acquire('given');
    const waiting = b.acquire('given');
    await first.release();
    await (await waiting).release();
    await Promise.all([a.close(), b.close()]);
    await expect(client.set('mine', 'yes')).resolves.toBe('OK');
  });

  it('a Sentinel that does not answer, or is not there, is passed over', async () => {
    const silent = await FaultProxy.start({ port: set.sentinels[0]?.port ?? 0 });
    endLater(() => silent.close());
    silent.drop();
    const dead = { host: '127.0.0.1', port: await freePort() };
    const [, , last] = set.addresses;
    const sentinels = [dead, { host: '127.0.0.1', port: silent.port }, ...(last ? [last] : [])];
    const service = connect({ sentinels });
    await expect(service.withLock('key', () => 'in', { waitMs: 10_000 })).resolves.toBe('in');
    await eventually(() =>
      expect(service.health.detail).toContain(`Sentinel 127.0.0.1:${dead.port}: connect ECONNREFUSED`),
    );
    expect(service.health.status).toBe('up');
  });

  it('no Sentinel at all is an error that says so, in time', async () => {
    const sentinels = [{ host: '127.0.0.1', port: await freePort() }];
    const service = connect({ sentinels, requestTimeoutMs: timeLimitOf(300), patienceMs: timeLimitOf(500) });
    await expect(service.acquire('key', LONG)).rejects.toThrow(/All sentinels are unreachable/);
    expect(service.health.status).toBe('down');
  });

  it('an unknown name of the master is an error', async () => {
    const service = connect({ name: 'nobody', requestTimeoutMs: timeLimitOf(300), patienceMs: timeLimitOf(500) });
    await expect(service.acquire('key', LONG)).rejects.toThrow(/All sentinels are unreachable/);
  });

  it('master and Sentinels are reached through other addresses, by natMap', async () => {
    const master = await set.master();
    const proxy = await FaultProxy.start(master);
    endLater(() => proxy.close());
    const service = connect({ natMap: { [`127.0.0.1:${master.port}`]: { host: '127.0.0.1', port: proxy.port } } });
    await service.withLock('key', () => undefined);
    expect(proxy.connections).toBe(1);
  });

  it('R15: each password goes where it belongs, a few rights are enough, and no error has one', async () => {
    const [password, sentinelPassword] = ['c4n4ry-p4ssw0rd', 'c4n4ry-s3ntinel'];
    const RIGHTS = '+sentinel|get-master-addr-by-name +sentinel|sentinels +subscribe +info &+switch-master';
    for (const { port } of set.sentinels)
      await askRedis(port, `ACL SETUSER watcher reset on >${sentinelPassword} ${RIGHTS}`);
    const { port } = await set.master();
    await askRedis(port, `ACL SETUSER app reset on >${password} ~lock:* &lock:* +@all`);
    const credentials = { username: 'app', password };
    const sentinelCredentials = { username: 'watcher', password: sentinelPassword };
    const access = { credentials, sentinelCredentials };
    const service = connect(access);
    await service.withLock('key', () => undefined);
    expect(await askRedis(port, 'CLIENT LIST')).toMatch(/name=nestjs-distributed-lock\S* .*user=app/);
    for (const sentinel of set.sentinels) {
      await eventually(async () => {
        expect(await askRedis(sentinel.port, 'CLIENT LIST')).toMatch(/ sub=1 .* user=watcher/);
      });
    }
    expect(service.health.status).toBe('up');

    const wrong = [
      { credentials: { ...credentials, password: 'x' } },
      { sentinelCredentials: { ...sentinelCredentials, password: 'x' } },
    ];
    for (const one of wrong) {
      const unlucky = connect({ ...access, ...one, requestTimeoutMs: timeLimitOf(300), patienceMs: timeLimitOf(500) });
      const error: unknown = await unlucky.acquire('key', LONG).catch((reason: unknown) => reason);
      const shown = inspect([error, unlucky, unlucky.backend, unlucky.health], { depth: 20 });
      expect(shown).toContain('WRONGPASS');
      expect(shown).not.toMatch(/c4n4ry/);
    }
  });

  it('a switch of masters is told by the Sentinels: holds are looked after at once, long before their renewal', async () => {
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const [service, other] = [connect({}, { observers }), connect()];
    const lock = await service.acquire('key', LONG);
    const waiting = other.acquire('key', LONG);
    const former = await set.master();
    await eventually(async () => expect(await askRedis(former.port, 'LLEN lock:{key}:q')).toBe('1'));
    // Frozen: no connection ends, and nobody asks anything for a third of a minute.
    await former.whileFrozen(async () => {
      await eventually(() => expect(events).toEqual(['jeopardy', 'safe']), { withinMs: 10_000 });
      const present = await set.master();
      expect(present).not.toBe(former);
      expect(lock.isHeld).toBe(true);
      // The waiter stands in line on the new master, where it can be reached.
      const findChannel = `local values = table.concat(redis.call('HVALS', 'lock:{key}:w'), ' ')
        return string.match(values, '([^ |]+)|')`.replaceAll(/\s+/gu, ' ');
      const channel = async () => askRedis(present.port, `EVAL "${findChannel}" 0`);
      await eventually(async () =>
        expect(await askRedis(present.port, `EVAL "return redis.call('PUBLISH', '${await channel()}', '-|1')" 0`)).toBe(
          '1',
        ),
      );
      await lock.release();
      await (await waiting).release();
    });
  });
});
