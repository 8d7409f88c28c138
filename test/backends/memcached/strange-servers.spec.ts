import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { memcached } from 'nestjs-distributed-lock/memcached';
import { packLease } from '../../../lib/backends/memcached/lease-value.js';
import {
  atLeastMs,
  describeWanted,
  eventually,
  failureOf,
  freePort,
  RedisServer,
  timeLimitOf,
} from '../../support/index.js';
import { MemcachedServer } from '../../servers/memcached-server.js';
import { MemcachedWorld } from './memcached-world.js';
import { ScriptedServer } from './scripted-server.js';

const LONG_TTL_MS = 60_000;
const TIMEOUT_MS = timeLimitOf(600);

describeWanted(['memcached'], 'a server that is none', () => {
  /** How an acquisition ends there, and when. */
  async function refusal(port: number): Promise<LockBackendError> {
    const options = { servers: `127.0.0.1:${port}`, connectTimeoutMs: TIMEOUT_MS, requestTimeoutMs: TIMEOUT_MS };
    await using service = new LockService(memcached(options));
    const since = performance.now();
    const error = await failureOf(service.tryAcquire('k'));
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(service.health).toMatchObject({ status: 'down' });
    return error as LockBackendError;
  }

  it('Redis: an error that says what it answered', async () => {
    const server = await RedisServer.start();
    const error = await refusal(server.port);
    expect(error.message).toContain(`127.0.0.1:${server.port}: no answer of a memcached server: "-ERR unknown command`);
    await server.stop();
  });

  it('HTTP: an error that says what it answered', async () => {
    const server = createServer((_request, response) => response.end('hello'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const error = await refusal((server.address() as AddressInfo).port);
    expect(error.message).toContain('no answer of a memcached server: "HTTP/1.1 400 Bad Request"');
    server.close();
  });

  it.each<[string, (write: (text: string) => void) => void, RegExp]>([
    ['says nothing', () => undefined, new RegExp(`no answer within ${TIMEOUT_MS} ms`, 'u')],
    ['says half a line for ever', (write) => drip(write, 'V'), new RegExp(`no answer within ${TIMEOUT_MS} ms`, 'u')],
    ['says lines for ever', (write) => drip(write, 'STAT x 1\r\n'), /no answer of a memcached server: "STAT x 1"/],
    ['greets in a binary protocol', (write) => write('\x4a\x00\x00\x00\x0a5.5.5'), /no answer of a memcached server/],
    [
      'has an error for everything',
      (write) => write('ERROR\r\n'.repeat(4)),
      /no answer of a memcached server: "ERROR"/,
    ],
  ])('one that %s: an error in time', async (_what, talk, message) => {
    await using server = await ScriptedServer.start((socket) => talk((text) => socket.write(text)));
    expect((await refusal(server.port)).message).toMatch(message);
  });

  it('one that closes every connection: an error in time', async () => {
    await using server = await ScriptedServer.start((socket) => void socket.end());
    expect((await refusal(server.port)).message).toContain('the server closed the connection');
    // It is asked again and again, but less and less often.
    expect(server.accepted).toBeLessThan(20);
  });

  it('nobody there: an error in time, and then, when somebody is, a lock', async () => {
    const port = await freePort();
    const service = new LockService(memcached({ servers: `127.0.0.1:${port}` }));
    await expect(service.acquire('k', { waitMs: timeLimitOf(1_000) })).rejects.toThrow(/ECONNREFUSED/);
    const server = await MemcachedServer.start({ port });
    await eventually(() => service.health.status === 'up');
    await (await service.acquire('k')).release();
    await service.close();
    await server.stop();
  });
});

describeWanted(['memcached'], 'a server that is not as it should be', () => {
  it('without cas ids (-C): refused, since nobody could compare owners', async () => {
    await using world = await MemcachedWorld.start({ args: ['-C'] });
    for (const protocol of ['auto', 'meta', 'classic'] as const) {
      const acquired = world.service({ protocol }).tryAcquire('k');
      await expect(acquired).rejects.toThrow(/no answer of a memcached server|does not compare cas ids/);
    }
    await expect(world.server.ask('get lock:l:k')).resolves.toBe('END\r\n');
  });

  it('that closes idle connections: nobody notices', async () => {
    await using world = await MemcachedWorld.start({ args: ['-o', 'idle_timeout=1'] });
    const service = world.service();
    const lock = await service.acquire('k', { ttlMs: LONG_TTL_MS });
    await eventually(() => service.health.status === 'down', { withinMs: 5_000 });
    await eventually(() => service.health.status === 'up');
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await (await service.acquire('k')).release();
  });

  it('that has no more connections to give: an error in time for some, and a lock for everybody when others leave', async () => {
    await using world = await MemcachedWorld.start({ args: ['-c', '40'] });
    const crowd = Array.from({ length: 60 }, () => world.service());
    const since = performance.now();
    const tries = crowd.map((service, i) => service.tryAcquire(`k${i}`).catch((error: unknown) => error));
    const refused = (await Promise.all(tries)).filter((outcome) => outcome instanceof Error);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(4_000));
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) expect(error).toBeInstanceOf(LockBackendError);
    await Promise.all(crowd.map((service) => service.close()));
    const late = world.service();
    await eventually(async () => (await late.acquire('k0', { waitMs: 0 })).release());
  });

  it('M1: that evicts: the holder of a deleted lock is told with the next renewal, tokens grow, and health has warned', async () => {
    await using world = await MemcachedWorld.start({ args: ['-m', '2'] });
    const [service, other] = [world.service(), world.service()];
    const lock = await service.acquire('k', { ttlMs: atLeastMs(3_000) });
    expect(service.health).toMatchObject({
      status: 'up',
      detail: expect.stringMatching(/not started with -M.* 0 evictions/),
    });
    const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
    // A command for debugging, which does not count as use of the item.
    await fill(world, async () => (await world.server.ask('me lock:l:k')) === 'EN\r\n');
    const evictedAt = performance.now();
    // A second holder gets in: this is what "best-effort" means.
    const second = await other.acquire('k', { waitMs: timeLimitOf(1_000) });
    await told;
    expect(performance.now() - evictedAt).toTakeLessThan(timeLimitOf(2_000));
    expect(second.fencingToken).toBeGreaterThan(lock.fencingToken);
    await lock.release();
    expect(second.isHeld).toBe(true);
    const { evictions } = Object.fromEntries(await world.server.statistics());
    expect(Number(evictions)).toBeGreaterThan(0);
    // One who connects now sees them.
    const third = world.service();
    await third.tryAcquire('third');
    expect(third.health.detail).toContain(`${evictions} evictions so far`);
  });
});

/** Writes items of the size of leases until `enough` says so. */
async function fill(world: MemcachedWorld, enough: (reply: string) => boolean | Promise<boolean>): Promise<void> {
  const metadata = { host: hostname(), pid: process.pid };
  const value = 'x'.repeat(packLease(randomUUID(), 1_800_000_000, metadata).length);
  for (let i = 0; i < 100; i += 1) {
    const sets = Array.from({ length: 1_000 }, (_, j) => `set filler-${i}-${j} 0 0 ${value.length}\r\n${value}`);
    if (await enough(await world.server.ask(sets.join('\r\n')))) return;
  }
  throw new Error('100,000 items were not enough');
}

/** Again and again, for as long as a test takes. */
function drip(write: (text: string) => void, text: string): void {
  const timer = setInterval(() => write(text), 10);
  setTimeout(() => clearInterval(timer), 2_000).unref();
}
