import { jest } from '@jest/globals';
import { type LockEvents, type LockServiceOptions, LockBackend } from 'nestjs-distributed-lock/core';
import { ServiceWorld } from './service-world.js';

describe('hand-off', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks, events } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks, events } = world);
  });
  afterEach(() => world.locks.close());

  it('passes the lease on without asking the backend', async () => {
    const first = await locks.acquire('k');
    const second = locks.acquire('k');
    backend.breakDown();
    await first.release();
    expect((await second).fencingToken).toBe(first.fencingToken + 1n);
    backend.repair();
    await (await second).release();
    expect(events.filter(([name]) => name === 'acquired').map(([, event]) => event)).toMatchObject([
      { from: 'backend' },
      { from: 'hand-off' },
    ]);
  });

  const leases = async (options: LockServiceOptions, pauseMs = 0): Promise<number> => {
    const capped = world.service(options);
    const callers = Array.from({ length: 10 }, () => capped.withLock('k', () => clock.stall(pauseMs)));
    await Promise.all(callers);
    const all = events.map(([name, event]) => (name === 'acquired' ? (event as LockEvents['acquired']).from : ''));
    return all.filter((from) => from === 'backend').length;
  };

  it('gives the key back after maxHandOffs', async () => {
    await expect(leases({ maxHandOffs: 4 })).resolves.toBe(2);
  });

  it('lets other processes ask before it takes the key again, and only then', async () => {
    const acquire = jest.spyOn(LockBackend.prototype, 'acquire');
    await leases({ maxHandOffs: 4 });
    await (await locks.acquire('k')).release();
    expect(acquire.mock.calls.map(([, { shouldYield }]) => shouldYield)).toEqual([false, true, false]);
    acquire.mockRestore();
  });

  it('does not have a later caller yield when the next one has left meanwhile', async () => {
    const acquire = jest.spyOn(LockBackend.prototype, 'acquire');
    const capped = world.service({ maxHandOffs: 0 });
    const first = await capped.acquire('k');
    const controller = new AbortController();
    const second = expect(capped.acquire('k', { signal: controller.signal })).rejects.toThrow('enough');
    const released = first.release();
    controller.abort(new Error('enough'));
    await Promise.all([second, released]);
    await (await capped.acquire('k')).release();
    expect(acquire.mock.calls.map(([, { shouldYield }]) => shouldYield)).toEqual([false, false]);
    acquire.mockRestore();
  });

  it('gives the key back after maxHandOffMs', async () => {
    await expect(leases({ maxHandOffMs: 45 }, 10)).resolves.toBe(2);
  });

  it('ends after 20 ms while others stand in line, and only then', async () => {
    const leave = await backend.occupy('k');
    const callers = Array.from({ length: 10 }, () => locks.withLock('k', () => clock.stall(5)));
    await leave();
    await Promise.all(callers);
    const waitedFor = ['backend', 'hand-off', 'hand-off', 'hand-off'];
    const free = ['backend', 'hand-off', 'hand-off', 'hand-off', 'hand-off', 'hand-off'];
    const origins = events.filter(([name]) => name === 'acquired').map(([, event]) => event);
    expect(origins).toMatchObject([...waitedFor, ...free].map((from) => ({ from })));
  });

  it('goes on for as long as the token of a lease that was waited for allows', async () => {
    const leave = await backend.occupy('k');
    const tokens: bigint[] = [];
    const visit = (): Promise<unknown> => locks.withLock('k', ({ fencingToken }) => tokens.push(fencingToken));
    const callers = Array.from({ length: 4_200 }, visit);
    await leave();
    await Promise.all(callers);
    expect(tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? token))).toBe(true);
    const leased = events.filter(([name]) => name === 'acquired').map(([, event]) => event as LockEvents['acquired']);
    const from = leased.flatMap((event, i) => (event.from === 'backend' ? [i] : []));
    expect(from).toEqual([0, 2_001, 4_002]);
  });

  it('does not pass a lease on to a caller who wants another one', async () => {
    const first = await locks.acquire('k', { ttlMs: 5_000 });
    const second = locks.acquire('k', { ttlMs: 6_000 });
    const third = locks.acquire('k', { ttlMs: 6_000, watchdog: false });
    await first.release();
    await (await second).release();
    await (await third).release();
    expect(events.filter(([name]) => name === 'acquired').map(([, event]) => event)).toMatchObject([
      { from: 'backend' },
      { from: 'backend' },
      { from: 'backend' },
    ]);
  });

  it('does not pass on a lease in jeopardy, nor use one that was lost on the way', async () => {
    const first = await locks.acquire('k', { ttlMs: 1_000 });
    const second = locks.acquire('k', { ttlMs: 1_000 });
    backend.breakDown();
    await clock.advance(500);
    expect(first.state).toBe('jeopardy');
    backend.repair();
    await first.release();
    const lock = await second;
    expect(lock.fencingToken & 2_047n).toBe(0n);
    const third = locks.acquire('k', { ttlMs: 1_000 });
    const released = lock.release();
    backend.revoke('k');
    await released;
    expect((await third).isHeld).toBe(true);
    await (await third).release();
  });
});
