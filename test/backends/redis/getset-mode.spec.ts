import { randomUUID } from 'node:crypto';
import { atLeastMs, eventually } from '../../support/index.js';
import { contend, describeRedis, win } from './redis-world.js';

describeRedis('redis, mode getset', (world) => {
  const mode = 'getset';

  /** A lease as a holder that died would have left it, with so much left by the server's clock. */
  const leave = async (leftMs: number) => {
    const [seconds = 0] = await world.operator.time();
    await world.operator.set('lock:{key}', `${seconds * 1_000 + leftMs}|1000|somebody|{}`);
  };

  it('sends no script, and what it sends', async () => {
    const service = world.service({ mode });
    await service.withLock('warm', () => undefined);
    const commands = await world.commandsDuring(() => service.withLock('key', () => undefined));
    expect(commands).toEqual(['time', 'get', 'del', 'setnx', 'time', 'time', 'get', 'del', 'del']);
  });

  it('takes over a lease that has ended by the server, with a higher token', async () => {
    await leave(-2_000);
    const lease = await win(world.backend({ mode }), 'key');
    await expect(lease.renew()).resolves.toBe(true);
    await lease.release();
    await expect(world.operator.exists('lock:{key}')).resolves.toBe(0);
  });

  it('does not touch one that has not', async () => {
    await leave(60_000);
    const before = await world.operator.get('lock:{key}');
    await expect(contend(world.backend({ mode }), 'key')).resolves.toBeNull();
    await expect(world.operator.get('lock:{key}')).resolves.toBe(before);
  });

  it('lets one of many in when a lease has ended', async () => {
    await leave(-2_000);
    const backends = Array.from({ length: 8 }, () => world.backend({ mode }));
    await Promise.all(backends.map((backend, i) => win(backend, `warm-${i}`)));
    const leases = await Promise.all(backends.map((backend) => contend(backend, 'key')));
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
  });

  it('gives the same owner the key again, with a full TTL', async () => {
    const backend = world.backend({ mode });
    const owner = randomUUID();
    const first = await win(backend, 'key', { owner, ttlMs: atLeastMs(1_000) });
    const second = await win(backend, 'key', { owner, ttlMs: 60_000 });
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    const [expiry] = String(await world.operator.get('lock:{key}')).split('|');
    const [seconds = 0] = await world.operator.time();
    expect(Number(expiry)).toBeGreaterThan(seconds * 1_000 + 50_000);
  });

  it('never frees or renews what another owner has by now', async () => {
    const backend = world.backend({ mode });
    const stale = await win(backend, 'key');
    await world.operator.del('lock:{key}');
    const present = await win(backend, 'key');
    await expect(stale.renew()).resolves.toBe(false);
    await stale.release();
    await expect(present.renew()).resolves.toBe(true);
  });

  it('leaves a lease alone that ends within a moment: the DEL could come too late', async () => {
    const backend = world.backend({ mode, requestTimeoutMs: 8_000 });
    const ttlMs = atLeastMs(1_500);
    const lease = await win(backend, 'key', { ttlMs });
    const [expiry] = String(await world.operator.get('lock:{key}')).split('|');
    // Until less than a third is left by the server's clock.
    await eventually(async () => {
      const [seconds = 0, micros = 0] = await world.operator.time();
      expect(Number(expiry) - (seconds * 1_000 + micros / 1_000)).toBeLessThan(ttlMs * 0.3);
    });
    await lease.release();
    await expect(world.operator.exists('lock:{key}')).resolves.toBe(1);
    const next = await win(world.backend({ mode }), 'key', { waitMs: 5_000 });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  it('A6: a lost reply of GETSET is no win, because our name may stand over that of another', async () => {
    await leave(-2_000);
    const proxy = await world.proxy();
    const service = world.service({ mode, url: proxy.url });
    await service.withLock('warm', () => undefined);
    const dropped = proxy.dropReplyAfter(/GETSET/i);
    const since = performance.now();
    const lock = await service.acquire('key', { ttlMs: atLeastMs(1_000) });
    await dropped;
    expect(performance.now() - since).toBeGreaterThan(900);
    expect(lock.isHeld).toBe(true);
  });

  it('A6: a lost reply of SETNX is found to be ours', async () => {
    const proxy = await world.proxy();
    const service = world.service({ mode, url: proxy.url });
    await service.withLock('warm', () => undefined);
    const dropped = proxy.dropReplyAfter(/SETNX/i);
    const lock = await service.acquire('key', { ttlMs: 60_000 });
    await dropped;
    expect(lock.isHeld).toBe(true);
  });

  it('names the holder, and never takes what a stranger wrote', async () => {
    const backend = world.backend({ mode });
    await win(backend, 'key', { metadata: { host: 'a|b', pid: 7 } });
    const seen: unknown[] = [];
    await contend(backend, 'key', { onBlocked: (by) => void seen.push(by) });
    expect(seen).toEqual([{ host: 'a|b', pid: 7, since: expect.any(Date) }]);
    await world.operator.set('lock:{key}', 'not a lease');
    await expect(contend(backend, 'key')).resolves.toBeNull();
    await eventually(async () => expect(await world.operator.get('lock:{key}')).toBe('not a lease'));
  });
});
