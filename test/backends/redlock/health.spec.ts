import { inspect } from 'node:util';
import { type BackendHealth, LockService } from 'nestjs-distributed-lock/core';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { describeWanted, eventually, failureOf, freePort, Holder, timeLimitOf } from '../../support/index.js';
import { ownerName } from '../../support/owner-name.js';
import { NODE_TIMEOUT_MS, RedlockWorld } from './redlock-world.js';

describeWanted(['redlock'], 'the health of %s', () => {
  const world = RedlockWorld.shared();

  const nameOf = (node: number): string => `127.0.0.1:${world.servers[node]?.port}`;
  const observed = () => {
    const told: BackendHealth[] = [];
    const observers = [{ healthChanged: (health: BackendHealth) => told.push(health) }];
    // No node is ever silent here: those that are down refuse the connection.
    return { told, service: world.service({ requestTimeoutMs: 10 * NODE_TIMEOUT_MS }, { observers }) };
  };

  it('is up with a quorum, and has a state for each node', async () => {
    const { told, service } = observed();
    await service.withLock('key', () => undefined);
    await eventually(() => expect(service.health.nodes?.map(({ status }) => status)).toEqual(Array(5).fill('up')));
    const names = world.servers.map((_, node) => nameOf(node));
    expect(service.health).toEqual({
      status: 'up',
      nodes: names.toSorted().map((node) => ({ name: node, status: 'up' })),
    });
    expect(told).toHaveLength(1);
  });

  it('stays up with a minority down, which is told once, and once more when it is back', async () => {
    const { told, service } = observed();
    await service.withLock('key', () => undefined);
    await eventually(() => expect(service.health.nodes?.map(({ status }) => status)).toEqual(Array(5).fill('up')));
    await world.servers[0]?.kill();
    for (let round = 0; round < 20; round += 1) await service.withLock(`key-${round}`, () => undefined);
    await eventually(() => expect(service.health.detail).toMatch(/ECONNREFUSED/));
    expect(service.health.status).toBe('up');
    expect(service.health.detail).toContain(`${nameOf(0)} is down`);
    expect(service.health.nodes?.find((node) => node.name === nameOf(0))).toMatchObject({ status: 'down' });
    expect(told.map(({ status }) => status)).toEqual(['up', 'up']);
    expect(told[1]?.detail).toContain(nameOf(0));
    await world.servers[0]?.restart({ empty: true });
    await eventually(() => expect(told).toHaveLength(3));
    expect(told[2]).toMatchObject({ status: 'up' });
    expect(service.health.detail).toBeUndefined();
  });

  it('is down without a quorum, before anything is asked of it again, and up again by itself', async () => {
    const { told, service } = observed();
    await service.withLock('key', () => undefined);
    await eventually(() => expect(service.health.nodes?.map(({ status }) => status)).toEqual(Array(5).fill('up')));
    await Promise.all(world.servers.slice(0, 3).map((server) => server.kill()));
    await eventually(() => expect(service.health.status).toBe('down'));
    await Promise.all(world.servers.slice(0, 3).map((server) => server.restart({ empty: true })));
    await eventually(() => expect(service.health.status).toBe('up'));
    expect(told.map(({ status }) => status)).toContain('down');
    expect(told.at(-1)?.status).toBe('up');
  });

  it('R9: names the node that may delete locks for want of memory', async () => {
    await world.operators[1]?.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { service } = observed();
    await service.withLock('key', () => undefined);
    await eventually(() => expect(service.health.detail).toContain(`${nameOf(1)}: maxmemory-policy is allkeys-lru`));
    expect(service.health.status).toBe('up');
    await world.operators[1]?.config('SET', 'maxmemory-policy', 'noeviction');
  });

  it('R10: a full node is one that fails, and gives back what it has', async () => {
    const { service } = observed();
    const lock = await service.acquire('key');
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    await Promise.all(world.operators.slice(0, 3).map((operator) => operator.config('SET', 'maxmemory', '1')));
    try {
      await expect(service.acquire('other', { waitMs: 0 })).rejects.toThrow(/OOM/);
      await lock.release();
      await eventually(async () => expect(await world.leases('key')).toBe(0));
    } finally {
      await Promise.all(world.operators.map((operator) => operator.config('SET', 'maxmemory', '0')));
    }
  });

  it('nodes that are down at the start are an error in time, and then they are up', async () => {
    const ports = await Promise.all([1, 2, 3].map(() => freePort()));
    const urls = ports.map((port) => `redis://127.0.0.1:${port}`);
    const service = world.service({ urls });
    const since = performance.now();
    await expect(service.acquire('key', { waitMs: 60_000 })).rejects.toThrow(/ECONNREFUSED/);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
    expect(service.health.status).toBe('down');
  });

  it('R15: neither passwords nor owners are in errors or in what is printed', async () => {
    const password = 'c4n4ry-p4ssw0rd';
    const port = await freePort();
    const shown: string[] = [];
    const show = (...values: unknown[]) => shown.push(...values.map((value) => inspect(value, { depth: 20 })));
    const observers = [{ backendFailed: show, healthChanged: show, jeopardy: show }];
    const secret = (url: string): string => url.replace('//', `//app:${password}@`);
    for (const urls of [world.urls.map(secret), [secret(`redis://127.0.0.1:${port}`)]]) {
      const service = world.closing(
        new LockService(redlock({ urls, requestTimeoutMs: timeLimitOf(300) }), { observers }),
      );
      show(await failureOf(service.acquire('key', { waitMs: 0 })), service, service.backend, service.health);
    }
    expect(shown.join()).toContain('WRONGPASS');
    expect(shown.join()).toContain('ECONNREFUSED');
    await Promise.all(world.operators.map((operator) => operator.rpush('redlock:{key}', 'x')));
    const service = world.service({}, { observers });
    show(await failureOf(service.acquire('key', { waitMs: 0 })));
    expect(shown.join()).toContain('WRONGTYPE');
    expect(shown.join()).not.toContain(password);
    expect(shown.join()).not.toContain(await ownerName());
  });

  it('A23: nodes that come and go harm no process, and it ends by itself', async () => {
    await using holder = await Holder.start({ backend: 'redlock', urls: world.urls });
    await holder.acquire('key', { ttlMs: 60_000 });
    await Promise.all(world.servers.slice(0, 3).map((server) => server.kill()));
    world.servers[3]?.freeze();
    const error = await failureOf(holder.acquire('other', { ttlMs: 1_000, waitMs: 300 }));
    expect(String(error)).toContain('redlock could not acquire "other"');
    await holder.close();
    await expect(holder.exit()).resolves.toEqual({ code: 0, signal: null });
    expect(holder.child.stderr).toBe('');
    world.servers[3]?.thaw();
    await Promise.all(world.servers.slice(0, 3).map((server) => server.restart({ empty: true })));
  });
});
