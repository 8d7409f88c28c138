import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { atLeastMs, describeWanted, eventually, failureOf, timeLimitOf } from '../../support/index.js';
import { RedlockWorld } from './redlock-world.js';

const TTL = { ttlMs: atLeastMs(900), waitMs: 5_000 };
const REQUEST_TIMEOUT_MS = timeLimitOf(500);

/** One server under two names: https://github.com/redisson/redisson/issues/956 */
describeWanted(['redlock'], '%s: a server that has two names', () => {
  afterEach(() => world.servers.forEach((server) => server.thaw()));
  const world = RedlockWorld.shared(2);
  afterEach(() => Promise.all(world.operators.map((operator) => operator.acl('SETUSER', 'default', '+info'))));

  const namesOfFirst = (): [string, string] => {
    const [first] = world.servers;
    return [`127.0.0.1:${first?.port}`, `localhost:${first?.port}`];
  };
  const urls = (): string[] => [...namesOfFirst().map((host) => `redis://${host}`), world.urls[1] ?? ''];

  it.each(['+info', '-info'])('is refused at the start, by both names, with %s', async (right) => {
    await Promise.all(world.operators.map((operator) => operator.acl('SETUSER', 'default', right)));
    for (let round = 0; round < 5; round += 1) {
      const error = await failureOf(world.service({ urls: urls() }).start());
      expect(error).toBeInstanceOf(LockConfigurationError);
      for (const host of namesOfFirst()) expect(String(error)).toContain(host);
    }
  });

  it.each(['+info', '-info'])('is no quorum by itself, with %s', async (right) => {
    await Promise.all(world.operators.map((operator) => operator.acl('SETUSER', 'default', right)));
    world.servers[1]?.freeze();
    const service = world.service({ urls: urls(), requestTimeoutMs: REQUEST_TIMEOUT_MS });
    const error = await failureOf(service.acquire('key', { ...TTL, waitMs: 0 }));
    for (const host of namesOfFirst()) expect(String(error)).toContain(host);
    expect(service.health.detail).toContain('same server');
  });

  it('does not renew a lock for another one', async () => {
    const service = world.service({ urls: urls(), requestTimeoutMs: REQUEST_TIMEOUT_MS });
    const lock = await service.acquire('key', TTL);
    await world.free('key', [1]);
    world.servers[1]?.freeze();
    await eventually(() => !lock.isHeld);
  });

  it('is found out as soon as it answers', async () => {
    world.servers[0]?.freeze();
    const service = world.service({ urls: urls(), requestTimeoutMs: REQUEST_TIMEOUT_MS });
    await failureOf(service.tryAcquire('key'));
    world.servers[0]?.thaw();
    await eventually(async () => {
      await service.tryAcquire('key').catch(() => undefined);
      expect(service.health.detail).toContain('same server');
    });
  });

  it('is no other server after a restart', async () => {
    const service = world.service();
    await service.start();
    await world.servers[0]?.restart({ empty: true });
    await eventually(() => service.withLock('key', () => undefined));
    await eventually(() => expect(service.health).toMatchObject({ status: 'up' }));
  });
});
