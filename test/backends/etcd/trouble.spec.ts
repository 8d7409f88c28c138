import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LockBackendError, LockService, LockShutdownError } from 'nestjs-distributed-lock/core';
import { etcd } from 'nestjs-distributed-lock/etcd';
import { getSizeAdvice } from '../../../lib/backends/etcd/database-size.js';
import { aborted, atLeastMs, eventually, failureOf, handled, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { EtcdWorld, lineOf, wholeSecondsOf } from './etcd-world.js';

describeWanted(['etcd'], 'trouble with etcd', () => {
  it('E5: history compacted before a watch of it began: looks again', async () => {
    await using world = await EtcdWorld.start();
    const ours = world.service();
    const theirs = await world.proxied({ requestTimeoutMs: atLeastMs(2_000), sessionTtlMs: 10_000 });
    const lock = await ours.acquire('k');
    world.proxy.pause('down');
    const waiting = theirs.acquire('k', { waitMs: 20_000 });
    await lineOf(world, 'k', 2);
    await lock.release();
    await world.operator.put('something', 'else');
    await world.operator.compact();
    const since = performance.now();
    world.proxy.resume();
    await (await waiting).release();
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_000));
  });

  it('E5: the stream of the watches cut, the predecessor gone meanwhile and compacted away: looks again', async () => {
    await using world = await EtcdWorld.start();
    const ours = world.service();
    const theirs = await world.proxied({ sessionTtlMs: 10_000 });
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 20_000 });
    await lineOf(world, 'k', 2);
    world.proxy.refuse();
    world.proxy.reset();
    await lock.release();
    await world.operator.put('something', 'else');
    await world.operator.compact();
    const since = performance.now();
    await world.proxy.accept();
    await (await waiting).release();
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
  });

  it('E8: a full server: said so; what is held can be given back; goes on when there is room again', async () => {
    await using world = await EtcdWorld.start({ args: ['--quota-backend-bytes', '2000000'] });
    const service = world.service({ patienceMs: 300 });
    const lock = await service.acquire('held');
    // The server counts what is in its file, where what was put arrives a little later.
    const filler = async (): Promise<void> => {
      for (let i = 0; i < 2_000; i += 1) await world.operator.put(`filler-${i}`, 'x'.repeat(50_000));
    };
    await failureOf(filler());
    const error = await failureOf(service.acquire('k'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toContain('space exceeded');
    expect(String(error)).toContain('--auto-compaction-retention');
    expect(service.health).toMatchObject({ status: 'up', detail: expect.stringContaining('refuses every write') });
    expect(service.health.detail).toContain('--auto-compaction-retention');
    expect(await service.tryAcquire('held')).toBeNull();
    await lock.release();
    expect(await world.places('held')).toEqual([]);
    await world.operator.ask('kv/deleterange', { key: base64('filler'), range_end: base64('filles') });
    await world.operator.compact();
    await world.operator.ask('maintenance/defragment', {});
    await world.operator.disarm();
    const acquireAgain = async (): Promise<void> => {
      await (await service.acquire('k')).release();
      expect(service.health).toEqual({ status: 'up' });
    };
    await eventually(acquireAgain, { withinMs: 15_000, everyMs: 500 });
  });

  it('a database that nears its quota: health says so before it is full', () => {
    const GIB = 1024 ** 3;
    expect(getSizeAdvice(1.5 * GIB, 0, false)).toBeUndefined();
    expect(getSizeAdvice(1.7 * GIB, 0, false)).toMatch(/1\.70 GiB .* 2 GiB unless .*--auto-compaction-retention/u);
    expect(getSizeAdvice(1.7 * GIB, 8 * GIB, false)).toBeUndefined();
    expect(getSizeAdvice(7 * GIB, 8 * GIB, false)).toMatch(/7\.00 GiB .* quota of 8\.00 GiB/u);
    expect(getSizeAdvice(0.1 * GIB, 8 * GIB, true)).toContain('is full');
  });

  it('nobody listening when an application starts: health says so at once', async () => {
    await using world = await EtcdWorld.start();
    await world.server.kill();
    const backend = world.backend();
    expect(backend.store.health?.current).toEqual({ status: 'idle' });
    await failureOf(Promise.resolve(backend.store.start?.()));
    expect(backend.store.health?.current).toMatchObject({
      status: 'down',
      detail: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('away when an application starts, or for longer than a session lives: health is up again though nobody asks', async () => {
    await using world = await EtcdWorld.start();
    await world.server.kill();
    const service = world.service();
    const isUp = (): void => expect(service.health).toEqual({ status: 'up' });
    await service.start();
    expect(service.health).toMatchObject({ status: 'down' });
    await world.server.restart({ empty: false });
    await eventually(isUp, { withinMs: 5_000, everyMs: 20 });

    const lock = await service.acquire('k');
    await world.server.kill();
    await aborted(lock.signal);
    expect(service.health).toMatchObject({ status: 'down' });
    await world.server.restart({ empty: false });
    await eventually(isUp, { withinMs: 5_000, everyMs: 20 });
  });

  it('a time-out of a month is one that etcd understands', async () => {
    await using world = await EtcdWorld.start();
    const service = world.service({ requestTimeoutMs: 2 ** 31 - 1 });
    await (await service.acquire('k')).release();
  });

  it('nobody listening: an error that says so, in time, also where nobody waits', async () => {
    await using world = await EtcdWorld.start();
    await world.server.kill();
    const patienceMs = timeLimitOf(200);
    const service = world.service({ patienceMs });
    const since = performance.now();
    await expect(failureOf(service.acquire('k'))).resolves.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(performance.now() - since).toTakeLessThan(patienceMs + 2 * SLACK_MS);
    await expect(failureOf(service.tryAcquire('k'))).resolves.toBeInstanceOf(LockBackendError);
    expect(service.health).toMatchObject({ status: 'down' });
    await world.server.restart({ empty: false });
    await (await service.acquire('k')).release();
    expect(service.health).toEqual({ status: 'up' });
  });

  it('an endpoint that is no etcd: an error that says so', async () => {
    const web = createServer((_, response) => void response.end('welcome')).listen(0, '127.0.0.1');
    await once(web, 'listening');
    const { port } = web.address() as AddressInfo;
    await using service = new LockService(etcd({ endpoints: `http://127.0.0.1:${port}`, patienceMs: 200 }));
    await expect(failureOf(service.acquire('k'))).resolves.toMatchObject({ code: 'LOCK_BACKEND' });
    web.close();
  });

  it('closed: refuses at once, and sends those who wait away', async () => {
    await using world = await EtcdWorld.start();
    const backend = etcd({ endpoints: world.server.urls, sessionTtlMs: wholeSecondsOf(2_000) })();
    const service = new LockService(backend);
    const lock = await world.service().acquire('k');
    const waiting = handled(service.acquire('k', { waitMs: Infinity }));
    await lineOf(world, 'k', 2);
    await service.close();
    await expect(failureOf(waiting)).resolves.toBeInstanceOf(LockShutdownError);
    await expect(failureOf(new LockService(backend).acquire('other'))).resolves.toMatchObject({
      message: expect.stringContaining('etcd could not acquire "other": the backend is closed'),
    });
    expect(await world.places('k')).toHaveLength(1);
    await lock.release();
    await eventually(async () => expect(await world.operator.leases()).toHaveLength(1));
  });
});

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
