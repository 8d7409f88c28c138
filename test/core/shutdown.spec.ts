import { LockConfigurationError, LockService, LockShutdownError } from 'nestjs-distributed-lock/core';
import { TestLockBackend } from 'nestjs-distributed-lock/testing';
import { ServiceWorld } from './service-world.js';

const TTL_MS = 30_000;
const GRACE_MS = 10_000;

/** Work that goes on until a test ends it. */
function working(locks: LockService, key: string): { readonly done: Promise<void>; readonly end: () => void } {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  return { done: locks.withLock(key, () => ended), end };
}

/** Whether the backend was closed. */
function closing(backend: TestLockBackend): () => boolean {
  let closed = false;
  const close = backend.close.bind(backend);
  backend.close = async () => {
    closed = true;
    await close();
  };
  return () => closed;
}

describe('LockService.shutdown', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });

  it('waits for the work under locks, and gives these back only then', async () => {
    const work = working(locks, 'k');
    await clock.advance(0);
    let over = false;
    const shutdown = locks.shutdown().then(() => (over = true));
    await clock.advance(GRACE_MS - 1_000);
    expect([over, backend.held, locks.inspect()]).toEqual([false, ['k'], [expect.objectContaining({ state: 'held' })]]);
    work.end();
    await Promise.all([work.done, shutdown]);
    expect(backend.held).toEqual([]);
    expect(world.names).not.toContain('lost');
  });

  it('refuses newcomers in words of its own, and lets those who wait have their turn', async () => {
    const work = working(locks, 'k');
    await clock.advance(0);
    const waiter = locks.acquire('k');
    const shutdown = locks.shutdown();
    const refused = locks.acquire('other');
    await expect(refused).rejects.toThrow(LockShutdownError);
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN', key: 'other' });
    await expect(locks.tryAcquire('other')).rejects.toThrow('"other" is refused: this lock service is stopped');
    work.end();
    await work.done;
    await (await waiter).release();
    await shutdown;
  });

  it('lets work that holds a lock take others, also of another service, until that work ends', async () => {
    const other = world.service();
    let shutdown: Promise<unknown> = Promise.resolve();
    const again = { reentrant: true };
    const takeOthers = async (): Promise<string[]> => {
      shutdown = Promise.all([locks.shutdown(), other.drain()]);
      return [
        await locks.withLock('inner', async () => 'here'),
        await other.withLock('inner', async () => 'there'),
        await locks.withLock('outer', async () => 'again', again),
      ];
    };
    const taken = await locks.withLock('outer', takeOthers, again);
    expect(taken).toEqual(['here', 'there', 'again']);
    await shutdown;
    await expect(locks.acquire('outer')).rejects.toThrow(LockShutdownError);
  });

  it('tells work that does not end of its loss, and leaves the key to the TTL', async () => {
    const lock = await locks.acquire('k', { ttlMs: TTL_MS });
    const waiter = locks.acquire('k', { waitMs: Infinity });
    const sentAway = expect(waiter).rejects.toThrow(LockShutdownError);
    const shutdown = locks.shutdown();
    await clock.advance(GRACE_MS);
    await Promise.all([shutdown, sentAway]);
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    expect([lock.isHeld, backend.held]).toEqual([false, ['k']]);
    await expect(lock.run(() => locks.acquire('inner'))).rejects.toThrow(LockShutdownError);
    // The last renewal went out in the grace time; from then on there are none.
    await clock.advance(TTL_MS);
    expect(backend.held).toEqual([]);
  });

  it('gives the key back when the work ends after all, and closes the backend only then', async () => {
    const isClosed = closing(backend);
    const lock = await locks.acquire('k', { ttlMs: TTL_MS });
    await locks.shutdown(0);
    expect([lock.state, isClosed(), backend.held]).toEqual(['lost', false, ['k']]);
    await lock.release();
    await clock.advance(0);
    expect([isClosed(), backend.held]).toEqual([true, []]);
  });

  it.each([
    ['shutdown(1_000)', (): Promise<void> => locks.shutdown(1_000), 1_000],
    ['shutdown(0)', (): Promise<void> => locks.shutdown(0), 0],
    ['close()', (): Promise<void> => locks.close(), 0],
  ])('is hurried by a later %s, which frees nothing under the work', async (_, hurry, graceMs) => {
    const isClosed = closing(backend);
    const lock = await locks.acquire('k', { ttlMs: TTL_MS });
    let over = false;
    const shutdown = locks.shutdown(8_000).then(() => (over = true));
    const hurried = hurry();
    await clock.advance(Math.max(0, graceMs - 1));
    expect([over, lock.isHeld]).toEqual(graceMs > 0 ? [false, true] : [true, false]);
    await clock.advance(1);
    await Promise.all([shutdown, hurried]);
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    expect([isClosed(), backend.held]).toEqual([false, ['k']]);
    await lock.release();
    await clock.advance(0);
    expect([isClosed(), backend.held]).toEqual([true, []]);
  });

  it('is not prolonged by a later demand that waits longer', async () => {
    const lock = await locks.acquire('k');
    const shutdown = locks.shutdown(1_000);
    void locks.shutdown(8_000);
    await clock.advance(1_000);
    await shutdown;
    expect(lock.isHeld).toBe(false);
  });

  it('takes its grace time from the options', async () => {
    const service = world.service({ shutdownGraceMs: 50 });
    const lock = await service.acquire('k');
    const shutdown = service.shutdown();
    await clock.advance(49);
    expect(lock.isHeld).toBe(true);
    await clock.advance(1);
    await shutdown;
    expect(lock.isHeld).toBe(false);
    expect(() => world.service({ shutdownGraceMs: -1 })).toThrow(LockConfigurationError);
  });

  it('says whether it is drained, and may be drained again', async () => {
    const work = working(locks, 'k');
    await clock.advance(0);
    const drained = locks.drain(1_000);
    await clock.advance(1_000);
    await expect(drained).resolves.toBe(false);
    await expect(locks.drain(0)).resolves.toBe(false);
    work.end();
    await work.done;
    await expect(locks.drain(0)).resolves.toBe(true);
  });

  it('bounds all waits for the time in which a server finishes its requests, and serves newcomers until it ends', async () => {
    await backend.occupy('k');
    const waiter = locks.acquire('k', { waitMs: Infinity });
    const sentAway = expect(waiter).rejects.toThrow(LockShutdownError);
    await clock.advance(0);
    locks.beginGraceTime();
    await (await locks.acquire('other')).release();
    await clock.advance(GRACE_MS);
    await sentAway;
    await expect(locks.acquire('other')).rejects.toThrow(LockShutdownError);
  });

  it('tells work under a request that never ends when the grace time is over, and waits no second one for it', async () => {
    const isClosed = closing(backend);
    const lock = await locks.acquire('k', { ttlMs: TTL_MS });
    locks.beginGraceTime();
    await clock.advance(GRACE_MS - 1);
    expect(lock.isHeld).toBe(true);
    await clock.advance(1);
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    expect(locks.inspect()).toMatchObject([{ key: 'k', state: 'lost' }]);
    await expect(locks.drain()).resolves.toBe(false);
    await locks.shutdown(0);
    expect([isClosed(), backend.held]).toEqual([false, ['k']]);
    await lock.release();
    await clock.advance(0);
    expect([isClosed(), backend.held, locks.inspect()]).toEqual([true, [], []]);
  });

  it('gives a lock that is taken within the grace time as long as those before had, and its work further ones', async () => {
    const early = await locks.acquire('early');
    locks.beginGraceTime();
    await clock.advance(GRACE_MS - 10);
    const [lock, brief] = [await locks.acquire('k'), await locks.acquire('brief')];
    await clock.advance(10);
    expect([early.state, lock.state, brief.state]).toEqual(['lost', 'held', 'held']);
    await brief.release();
    await lock.run(() => locks.withLock('inner', () => undefined));
    await clock.advance(GRACE_MS - 11);
    expect(lock.isHeld).toBe(true);
    await clock.advance(1);
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    expect(backend.held.toSorted()).toEqual(['early', 'k']);
  });

  it('gives the key of such work back with close()', async () => {
    const lock = await locks.acquire('k');
    locks.beginGraceTime(0);
    await clock.advance(0);
    expect([lock.state, backend.held]).toEqual(['lost', ['k']]);
    await locks.close();
    expect(backend.held).toEqual([]);
    await lock.release();
  });
});
