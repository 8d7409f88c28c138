import { atLeastMs, eventually, fencingToken, throughout, timeLimitOf } from '../../support/index.js';
import { contend, describeRedis, win } from './redis-world.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(900);

describeRedis('faults of redis, mode queue', (world) => {
  const patient = { waitMs: 20_000 };

  it('R3: a server that forgot its scripts is told them again', async () => {
    const service = world.service();
    await service.withLock('key', () => undefined);
    const lock = await service.acquire('held');
    await world.operator.script('FLUSH');
    await service.withLock('key', () => undefined);
    await lock.release();
    expect(lock.state).toBe('released');
    await expect(world.operator.exists('lock:{held}')).resolves.toBe(0);
  });

  it('R4: tokens grow over a restart that lost everything', async () => {
    const service = world.service();
    const before = await service.withLock('key', (lock) => lock.fencingToken);
    await world.server.restart({ empty: true });
    const after = await service.withLock('key', (lock) => lock.fencingToken);
    expect(after).toBeGreaterThan(before);
  });

  it('R4: tokens grow although the clock is behind the last one', async () => {
    const ahead = 2 ** 52 - 2;
    await world.operator.set('lock:{key}:f', String(ahead));
    const lease = await win(world.backend(), 'key');
    expect(lease.fencingToken).toBe(BigInt(ahead) + 1n);
  });

  it('A6: a lost reply of acquire is asked for again, and the ghost is ourselves', async () => {
    const proxy = await world.proxy();
    const service = world.service({ url: proxy.url });
    await service.withLock('warm', () => undefined);
    const dropped = proxy.dropReplyAfter('lock:{key}');
    const lock = await service.acquire('key', { ttlMs: 60_000 });
    await dropped;
    expect(lock.state).toBe('held');
    expect(fencingToken(BigInt(String(await world.operator.get('lock:{key}:f'))))).toBe(lock.fencingToken);
  });

  it('A7: a lost reply of release frees the key, and is no error', async () => {
    const proxy = await world.proxy();
    const service = world.service({ url: proxy.url });
    const lock = await service.acquire('key');
    const dropped = proxy.dropReplyAfter('lock:{key}');
    await lock.release();
    await dropped;
    await expect(world.operator.exists('lock:{key}')).resolves.toBe(0);
  });

  it('R10: a full server is an error, never a key that is held; what is held can be given back and handed over', async () => {
    const [a, b] = [world.service(), world.service()];
    const [lock, other] = [await a.acquire('key'), await a.acquire('other')];
    const waiting = b.acquire('key', patient);
    await world.untilWaiting('key', 1);
    await world.operator.config('SET', 'maxmemory', '1');
    try {
      await expect(a.tryAcquire('third')).rejects.toThrow(/OOM/);
      await Promise.all([lock.release(), other.release()]);
      await expect(world.operator.exists('lock:{other}')).resolves.toBe(0);
      await expect((await waiting).release()).resolves.toBeUndefined();
    } finally {
      await world.operator.config('SET', 'maxmemory', '0');
    }
  });

  it('R10: a full server keeps shares as long as exclusive locks', async () => {
    const service = world.service();
    const locks = [
      await service.acquire('key', { ttlMs: TTL_MS }),
      await service.acquire('few', { limit: 3, ttlMs: TTL_MS }),
    ];
    await world.operator.config('SET', 'maxmemory', '1');
    try {
      await throughout(TTL_MS * 3, () => expect(locks.map(({ isHeld }) => isHeld)).toEqual([true, true]));
    } finally {
      await world.operator.config('SET', 'maxmemory', '0');
    }
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('R11: a key that was deleted is told at the next renewal', async () => {
    const lock = await world.service().acquire('key', { ttlMs: TTL_MS });
    const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
    await world.operator.del('lock:{key}');
    await told;
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  });

  it('R12: a server that may not write is an error, never a key that is held', async () => {
    const service = world.service();
    await service.withLock('warm', () => undefined);
    await world.operator.call('REPLICAOF', '127.0.0.1', '1');
    try {
      await expect(service.tryAcquire('key')).rejects.toThrow(/READONLY|MASTERDOWN/);
    } finally {
      await world.operator.call('REPLICAOF', 'NO', 'ONE');
    }
  });

  it('R12: a key of another kind is an error, and no reason to lose the other leases', async () => {
    const backend = world.backend();
    const [good, bad] = [await win(backend, 'good'), await win(backend, 'bad')];
    await world.operator.del('lock:{bad}');
    await world.operator.rpush('lock:{bad}', 'x');
    await expect(contend(backend, 'bad')).rejects.toThrow(/WRONGTYPE/);
    await expect(Promise.all([good.renew(), bad.renew()])).resolves.toEqual([true, false]);
  });

  it('R14: wake-ups that are lost cost time, and no waiter', async () => {
    const holder = await win(world.backend(), 'key');
    const waiting = win(world.backend(), 'key', patient);
    await world.untilWaiting('key', 1);
    await world.operator.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    // With nobody listening, the key is set free and the entry thrown away.
    await holder.release();
    const since = performance.now();
    await waiting;
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
  });

  it('R15: connections that are killed come back, and the lock stays held', async () => {
    const service = world.service();
    const lock = await service.acquire('key', { ttlMs: atLeastMs(1_500) });
    const statuses: string[] = [];
    service.backend.store.health?.onChange(({ status }) => void statuses.push(status));
    await world.operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually(() => expect(statuses).toEqual(['down', 'up']));
    await eventually(() => expect(lock.state).toBe('held'));
    await expect(service.tryAcquire('other')).resolves.not.toBeNull();
  });
});
