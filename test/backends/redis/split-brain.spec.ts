import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { askRedis, describeWanted, eventually, failureOf, RedisServer, throughout } from '../../support/index.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';
import { FencedResource } from '../../support/fenced-resource.js';

const LONG_TTL_MS = 60_000;

describeWanted(['redis-sentinel'], '%s: a former master that does not know it yet', () => {
  let set: RedisSentinels;
  let protectedServer: RedisServer;
  let resource: FencedResource;
  const services: LockService[] = [];

  beforeAll(async () => {
    [set, protectedServer] = await Promise.all([RedisSentinels.start({ replicas: 2 }), RedisServer.start()]);
    resource = new FencedResource(protectedServer.url);
  });
  afterAll(async () => {
    await Promise.all(services.map((service) => service.close(1_000)));
    resource[Symbol.dispose]();
    await Promise.all([set.stop(), protectedServer.stop()]);
  });

  /** One who goes by the Sentinels, and one who is on the side of the former master. */
  function bothSides(former: RedisServer): readonly [majority: LockService, minority: LockService] {
    const majority = new LockService(redis({ sentinels: set.addresses, name: set.name }));
    const minority = new LockService(redis({ url: former.url, patienceMs: 0 }));
    services.push(majority, minority);
    return [majority, minority];
  }

  /** Resolves when another server has become the master, with the former one let go on, which still takes itself for it. */
  async function failOver(former: RedisServer): Promise<void> {
    former.freeze();
    await eventually(async () => expect(await set.master()).not.toBe(former), { withinMs: 15_000, everyMs: 20 });
    former.thaw();
  }

  const write = (token: bigint) => resource.write({ key: 'sale', token, owner: `${token}`, proc: 'test' });

  it('R2: grants what the present master has granted, and only the fence tells the two holders apart', async () => {
    const former = await set.master();
    const [majority, minority] = bothSides(former);
    await failOver(former);
    const present = await majority.acquire('sale', { ttlMs: LONG_TTL_MS });
    await expect(write(present.fencingToken)).resolves.toBe(true);
    const second = await minority.acquire('sale', { ttlMs: LONG_TTL_MS, waitMs: 0 });
    expect([present.isHeld, second.isHeld]).toEqual([true, true]);
    await expect(write(second.fencingToken)).resolves.toBe(true);
    await expect(write(present.fencingToken)).resolves.toBe(false);
  });

  it('R2: refuses everything with min-replicas-to-write 1, as an error and never as "held"', async () => {
    const advice = ['min-replicas-to-write 1', 'min-replicas-max-lag 1'];
    for (const { port } of set.servers) for (const line of advice) await askRedis(port, `CONFIG SET ${line}`);
    const former = await set.master();
    const [majority, minority] = bothSides(former);
    await eventually(() => minority.withLock('before', () => undefined), { withinMs: 10_000 });
    await failOver(former);
    const present = await majority.acquire('other-sale', { ttlMs: LONG_TTL_MS, waitMs: 20_000 });
    await throughout(1_500, async () => {
      const error = await failureOf(minority.acquire('other-sale', { ttlMs: LONG_TTL_MS, waitMs: 0 }));
      expect(error).toMatchObject({
        code: 'LOCK_BACKEND',
        message: expect.stringMatching(/NOREPLICAS|READONLY|connection/),
      });
    });
    expect(present.isHeld).toBe(true);
    await present.release();
  });
});
