import { randomUUID } from 'node:crypto';
import { eventually } from '../../support/eventually.js';
import { contend, describeRedis, win } from './redis-world.js';

describeRedis('redis, mode plain', (world) => {
  const mode = 'plain';

  it('sends one command to acquire and one to release', async () => {
    const service = world.service({ mode });
    await service.withLock('warm', () => undefined);
    const commands = await world.commandsDuring(() => service.withLock('key', () => undefined));
    expect(commands).toEqual(['evalsha', 'evalsha']);
  });

  it('keeps one key and nothing else on the server, with its expiry from the first moment on', async () => {
    const lease = await win(world.backend({ mode }), 'key', { ttlMs: 20_000 });
    await expect(world.operator.keys('*')).resolves.toEqual(['lock:{key}']);
    await expect(world.operator.pttl('lock:{key}')).resolves.toBeGreaterThan(15_000);
    await lease.release();
    await expect(world.operator.keys('*')).resolves.toEqual([]);
  });

  it('gives the same owner the key again, with a full TTL and a token that did not shrink', async () => {
    const backend = world.backend({ mode });
    const owner = randomUUID();
    const first = await win(backend, 'key', { owner, ttlMs: 5_000 });
    const second = await win(backend, 'key', { owner, ttlMs: 20_000 });
    expect(second.fencingToken).toBeGreaterThanOrEqual(first.fencingToken);
    await expect(world.operator.pttl('lock:{key}')).resolves.toBeGreaterThan(15_000);
  });

  it('A6: a lost reply of acquire is asked for again', async () => {
    const proxy = await world.proxy();
    const service = world.service({ mode, url: proxy.url });
    await service.withLock('warm', () => undefined);
    const dropped = proxy.dropReplyAfter('lock:{key}');
    const lock = await service.acquire('key', { ttlMs: 60_000 });
    await dropped;
    expect(lock.isHeld).toBe(true);
  });

  it('never frees or renews what another owner has by now (DEL of a lock that is not ours)', async () => {
    const backend = world.backend({ mode });
    const stale = await win(backend, 'key');
    await world.operator.del('lock:{key}');
    const present = await win(backend, 'key');
    await expect(stale.renew()).resolves.toBe(false);
    await stale.release();
    await expect(present.renew()).resolves.toBe(true);
  });

  it('R4: tokens grow over a restart that lost everything', async () => {
    const service = world.service({ mode });
    const before = await service.withLock('key', (lock) => lock.fencingToken);
    await world.server.restart({ empty: true });
    await expect(service.withLock('key', (lock) => lock.fencingToken)).resolves.toBeGreaterThan(before);
  });

  it('R10: a full server is an error, and release still works', async () => {
    const service = world.service({ mode });
    const lock = await service.acquire('key');
    await world.operator.config('SET', 'maxmemory', '1');
    try {
      await expect(service.tryAcquire('other')).rejects.toThrow(/OOM/);
      await lock.release();
      await expect(world.operator.exists('lock:{key}')).resolves.toBe(0);
    } finally {
      await world.operator.config('SET', 'maxmemory', '0');
    }
  });

  it('waits for ever, not in a loop, for a key that a stranger wrote without an end', async () => {
    await world.operator.set('lock:{key}', 'not a lease');
    const waiting = win(world.backend({ mode }), 'key', { waitMs: 10_000 });
    await eventually(async () => expect((await world.server.commandStats()).get('pttl')).toBeGreaterThan(1));
    await expect(contend(world.backend({ mode }), 'key')).resolves.toBeNull();
    await world.operator.del('lock:{key}');
    await waiting;
  });

  it('shows such a value as its holder, and an operator can evict it', async () => {
    await world.operator.set('lock:{key}', 'not a lease');
    const locks = world.service({ mode });
    await expect(locks.look('key')).resolves.toMatchObject({ holder: { owner: 'not a lease' } });
    await expect(locks.evict('key')).resolves.toMatchObject({ owner: 'not a lease' });
    await expect(locks.withLock('key', () => 'in', { waitMs: 0 })).resolves.toBe('in');
  });
});
