import { LockBackendError, type LockService } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, failureOf, type FaultProxy, handled } from '../../support/index.js';
import { NODE_TIMEOUT_MS, RedlockWorld } from './redlock-world.js';

const LONG_TTL_MS = 60_000;
/** Nothing takes so long, unless it waits for a node that does not answer. */
const PATIENCE_MS = 5 * NODE_TIMEOUT_MS;
/** Each way to lose it: a script that is known to the server. */
const REQUEST = 'EVALSHA';

describeWanted(['redlock'], '%s and replies that are lost or late', () => {
  const world = RedlockWorld.shared();
  let service: LockService;
  let proxies: readonly FaultProxy[];
  let failures: string[];
  afterEach(() => world.endTest());

  /** Behind proxies, with all its connections and scripts. */
  const behindProxies = async (requestTimeoutMs = NODE_TIMEOUT_MS): Promise<void> => {
    const { all, urls } = await world.proxies();
    proxies = all;
    failures = [];
    const observers = [{ backendFailed: ({ operation }: { operation: string }) => failures.push(operation) }];
    service = world.service({ urls, requestTimeoutMs }, { observers, defaults: { ttlMs: LONG_TTL_MS } });
    await service.withLock('warm-up', () => undefined);
    await eventually(() => expect(service.health.nodes?.filter(({ status }) => status !== 'up')).toEqual([]));
  };
  const nothingLeft = (key: string): Promise<void> =>
    eventually(async () => expect(await world.leases(key)).toBe(0), { withinMs: 10_000 });

  it('A5: votes that are not delivered to a minority: nobody notices', async () => {
    await behindProxies(PATIENCE_MS);
    for (const proxy of proxies.slice(0, 2)) proxy.drop('up');
    const since = performance.now();
    const lock = await service.acquire('key', { waitMs: 0 });
    expect(performance.now() - since).toTakeLessThan(PATIENCE_MS);
    expect(lock.isHeld).toBe(true);
    for (const proxy of proxies) proxy.resume();
    await lock.release();
    await nothingLeft('key');
  });

  it('A5: to a majority: an error, nothing stays on the others, and nothing arrives later', async () => {
    await behindProxies();
    for (const proxy of proxies.slice(0, 3)) proxy.drop('up');
    const error = await failureOf(service.acquire('key', { waitMs: 10_000 }));
    expect(error).toBeInstanceOf(LockBackendError);
    await nothingLeft('key');
    for (const proxy of proxies) proxy.resume();
    const lock = await eventually(() => service.acquire('key'));
    const owners = (await world.owners('key')).filter((owner) => owner !== null);
    expect(new Set(owners).size).toBe(1);
    await lock.release();
    await nothingLeft('key');
  });

  it('A6: votes whose replies are lost, of a minority: nobody notices', async () => {
    await behindProxies(PATIENCE_MS);
    const lost = proxies.slice(0, 2).map((proxy) => proxy.dropReplyAfter(REQUEST));
    const since = performance.now();
    const lock = await service.acquire('key', { waitMs: 0 });
    expect(performance.now() - since).toTakeLessThan(PATIENCE_MS);
    await Promise.all(lost);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await nothingLeft('key');
    expect(failures).toEqual([]);
  });

  it('A6: of a majority: an error, and the ghosts are gone long before their TTL', async () => {
    await behindProxies();
    const lost = proxies.slice(0, 3).map((proxy) => proxy.dropReplyAfter(REQUEST));
    const error = await failureOf(service.acquire('key', { waitMs: 10_000 }));
    await Promise.all(lost);
    expect(error).toBeInstanceOf(LockBackendError);
    await nothingLeft('key');
    await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
  });

  it('A7: releases whose replies are lost, of a minority: nothing is reported, and nothing stays', async () => {
    await behindProxies();
    const lock = await service.acquire('key');
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    const lost = proxies.slice(0, 2).map((proxy) => proxy.dropReplyAfter(REQUEST));
    await Promise.all([lock.release(), ...lost]);
    expect(failures).toEqual([]);
    await nothingLeft('key');
  });

  it('A7: releases that are not delivered to a minority are, as soon as it can be reached', async () => {
    await behindProxies();
    const lock = await service.acquire('key');
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    for (const proxy of proxies.slice(0, 2)) proxy.drop();
    await lock.release();
    expect(failures).toEqual([]);
    await expect(world.leases('key')).resolves.toBe(2);
    for (const proxy of proxies) proxy.resume();
    await nothingLeft('key');
  });

  it('A7: not delivered to a majority: the work stands, the failure is told, and the key is free soon after', async () => {
    await behindProxies();
    const result = await service.withLock('key', async () => {
      await eventually(async () => expect(await world.leases('key')).toBe(5));
      for (const proxy of proxies.slice(0, 3)) proxy.drop();
      return 'sold';
    });
    expect(result).toBe('sold');
    expect(failures).toEqual(['release']);
    for (const proxy of proxies) proxy.resume();
    await nothingLeft('key');
  });

  it('A9: votes that come after the lease has ended are none', async () => {
    await behindProxies();
    for (const proxy of proxies.slice(0, 3)) proxy.delay(NODE_TIMEOUT_MS * 0.75, 'down');
    const trying = handled(service.acquire('key', { ttlMs: NODE_TIMEOUT_MS / 4, waitMs: 10 * NODE_TIMEOUT_MS }));
    await eventually(async () => expect(await world.leases('key')).toBeGreaterThan(0));
    await eventually(async () => expect(await world.leases('key')).toBe(0));
    for (const proxy of proxies) proxy.delay(0);
    const lock = await trying;
    expect(lock.isHeld).toBe(true);
    await lock.release();
  });

  it('A10: one that was frozen all the time has nothing of ours soon after it goes on', async () => {
    await behindProxies();
    await world.whileFrozen([0], async () => {
      await service.withLock('key', async () => {
        await expect(service.tryAcquire('other')).resolves.not.toBeNull();
      });
    });
    await nothingLeft('key');
    expect(failures).toEqual([]);
  });

  it('R3: nodes that forget the scripts are told again', async () => {
    await behindProxies();
    await Promise.all(world.operators.map((operator) => operator.script('FLUSH')));
    await service.withLock('key', async () => {
      await eventually(async () => expect(await world.leases('key')).toBe(5));
    });
    await nothingLeft('key');
  });
});
