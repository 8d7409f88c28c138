import type { LockService } from 'nestjs-distributed-lock/core';
import { ServiceWorld } from './service-world.js';

describe('permits of a limit', () => {
  const TWO = { limit: 2 } as const;
  let world = new ServiceWorld();
  let { clock, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, locks } = world);
  });
  afterEach(() => world.locks.close());

  /** In the order in which they get in. */
  const inOrder = (service: LockService, wanted: readonly (readonly [string, object])[]): string[] => {
    const inside: string[] = [];
    for (const [name, options] of wanted) {
      void service.withLock('k', () => void inside.push(name), { waitMs: 60_000, ...options }).catch(() => undefined);
    }
    return inside;
  };

  it('lets so many in as the limit says, over all processes', async () => {
    const other = world.service();
    const held = [await locks.acquire('k', TWO), await other.acquire('k', TWO)];
    expect(held[0]?.share).toEqual({ mode: 'permits', permits: 1, limit: 2 });
    expect(held[0]?.fencingToken).not.toBe(held[1]?.fencingToken);
    await expect(other.tryAcquire('k', TWO)).resolves.toBeNull();
    await expect(locks.tryAcquire('k', TWO)).resolves.toBeNull();
    await held[1]?.release();
    await using third = await locks.acquire('k', TWO);
    expect(third.isHeld).toBe(true);
    await held[0]?.release();
    await other.close();
  });

  it('hands permits from caller to caller of one process, first come first', async () => {
    const inside = inOrder(
      locks,
      ['a', 'b', 'c', 'd', 'e'].map((name) => [name, TWO] as const),
    );
    await clock.advance(1);
    expect(inside).toEqual(['a', 'b', 'c', 'd', 'e']);
    const from = world.events
      .filter(([name]) => name === 'acquired')
      .map(([, event]) => Reflect.get(event as object, 'from'));
    expect(from).toEqual(['backend', 'backend', 'hand-off', 'hand-off', 'hand-off']);
  });

  it('lets a big claim in before small ones that come later', async () => {
    const [other, third] = [world.service(), world.service()];
    const small = await locks.acquire('k', { limit: 3 });
    const big = other.acquire('k', { limit: 3, permits: 3, waitMs: 60_000 });
    await clock.advance(1);
    const later = third.acquire('k', { limit: 3, waitMs: 60_000 });
    await clock.advance(1_000);
    expect(third.inspect()).toEqual([]);
    await small.release();
    const lock = await big;
    expect(third.inspect()).toEqual([]);
    await lock.release();
    await (await later).release();
    await Promise.all([other.close(), third.close()]);
  });

  it('are drained by who wants all of the key', async () => {
    const other = world.service();
    const held = [await locks.acquire('k', TWO), await locks.acquire('k', TWO)];
    const draining = other.acquire('k', { waitMs: 60_000 });
    await clock.advance(1);
    await expect(locks.tryAcquire('k', TWO)).resolves.toBeNull();
    for (const lock of held) await lock.release();
    await (await draining).release();
    await other.close();
  });

  it('stay taken for minHoldMs, which makes a rate limit', async () => {
    const options = { ...TWO, minHoldMs: 1_000 };
    for (const _ of [1, 2]) await (await locks.acquire('k', options)).release();
    await expect(world.service().tryAcquire('k', options)).resolves.toBeNull();
    await clock.advance(1_010);
    await (await locks.acquire('k', options)).release();
  });

  it('are merely taken after a failure that a second question has mended', async () => {
    const { backend } = world;
    const tryAcquire = backend.tryAcquire.bind(backend);
    let failures = 1;
    backend.tryAcquire = (...asked) =>
      failures-- > 0 ? Promise.reject(new Error('ECONNRESET')) : tryAcquire(...asked);
    const first = locks.acquire('k', { limit: 1 });
    await clock.advance(1_000);
    const lock = await first;
    await expect(locks.tryAcquire('k', { limit: 1 })).resolves.toBeNull();
    await lock.release();
  });

  it('keeps exclusive callers as they were', async () => {
    const inside = inOrder(locks, [
      ['a', {}],
      ['b', {}],
    ]);
    await clock.advance(1);
    expect(inside).toEqual(['a', 'b']);
  });
});
