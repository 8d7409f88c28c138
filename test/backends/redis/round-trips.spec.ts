import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { atLeastMs, eventually, RedisServer, spawnChild } from '../../support/index.js';
import type { RoundTripsApi } from './round-trips-child.js';

/** Commands that take, release and keep locks. The scripts' own calls inside the server are not round trips. */
const SENT = ['eval', 'evalsha'];

describe('round trips to Redis, counted by the server', () => {
  let locks: LockService;
  afterAll(() => locks.close());
  const server = RedisServer.shared();
  beforeAll(async () => {
    locks = new LockService(redis({ url: server.url }));
    await (await locks.acquire('warm-up')).release();
  });

  const sent = async (): Promise<number> => {
    const stats = await server.commandStats();
    return SENT.reduce((sum, command) => sum + (stats.get(command) ?? 0), 0);
  };

  it('are 2 for an uncontended acquire and release', async () => {
    const before = await sent();
    for (let i = 0; i < 100; i += 1) await (await locks.acquire('free')).release();
    expect((await sent()) - before).toBe(200);
  });

  it('are at most 0.1 an acquisition for 100 callers of one process', async () => {
    const before = await sent();
    let acquired = 0;
    const caller = async (): Promise<void> => {
      for (let i = 0; i < 20; i += 1) await locks.withLock('hot', () => void (acquired += 1), { waitMs: 60_000 });
    };
    await Promise.all(Array.from({ length: 100 }, caller));
    expect(acquired).toBe(2_000);
    const each = ((await sent()) - before) / acquired;
    process.stdout.write(`round trips an acquisition, 100 callers in 1 process: ${each}\n`);
    expect(each).toBeLessThanOrEqual(0.1);
  });

  it('are at most 2 an acquisition for 100 waiters in 4 processes', async () => {
    const children = await Promise.all(
      [1, 2, 3, 4].map(() => spawnChild<RoundTripsApi>(new URL('round-trips-child.ts', import.meta.url))),
    );
    await Promise.all(children.map((child) => child.call('connect', server.url)));
    const before = await sent();
    const overlaps = await Promise.all(children.map((child) => child.call('crowd', { callers: 25, rounds: 4 })));
    const each = ((await sent()) - before) / 400;
    process.stdout.write(`round trips an acquisition, 100 waiters in 4 processes: ${each}\n`);
    expect(overlaps).toEqual([0, 0, 0, 0]);
    expect(each).toBeLessThanOrEqual(2);
    await Promise.all(children.map((child) => child.call('close')));
    for (const child of children) child.finish();
    await Promise.all(children.map((child) => child.exited));
  });

  it('are at most 2 an acquisition for 100 waiters in 4 processes that never hand a lease on', async () => {
    const backends = [1, 2, 3, 4].map(() => new LockService(redis({ url: server.url }), { maxHandOffs: 0 }));
    await Promise.all(backends.map(async (each) => (await each.acquire('warm-up')).release()));
    const before = await sent();
    await Promise.all(
      backends.flatMap((service) =>
        Array.from({ length: 25 }, () => service.withLock('cold', () => undefined, { waitMs: 60_000 })),
      ),
    );
    const each = ((await sent()) - before) / 100;
    process.stdout.write(`round trips an acquisition, the same without hand-off: ${each}\n`);
    expect(each).toBeLessThanOrEqual(3.1);
    await Promise.all(backends.map((service) => service.close()));
  });

  it('are at most 10 a third of the TTL to renew 1,000 locks', async () => {
    const ttlMs = atLeastMs(3_000);
    const handles = await Promise.all(Array.from({ length: 1_000 }, (_, i) => locks.acquire(`held ${i}`, { ttlMs })));
    const renewed = async (): Promise<number> => (await server.commandStats()).get('pexpire') ?? 0;
    const [start, renewedBefore] = [await sent(), await renewed()];
    await eventually(async () => expect((await renewed()) - renewedBefore).toBeGreaterThanOrEqual(3_000), {
      withinMs: 5_000,
    });
    const rounds = ((await renewed()) - renewedBefore) / 1_000;
    const each = ((await sent()) - start) / rounds;
    process.stdout.write(`round trips a third of the TTL, 1,000 locks held: ${each}\n`);
    expect(each).toBeLessThanOrEqual(10);
    expect(handles.every((handle) => handle.isHeld)).toBe(true);
    await Promise.all(handles.map((handle) => handle.release()));
  });
});
