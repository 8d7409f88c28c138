import {
  LockConfigurationError,
  LockDeadlockError,
  type LockHandle,
  LockService as Service,
  LockTimeoutError,
} from 'nestjs-distributed-lock/core';
import { ServiceWorld } from './service-world.js';
import { storeLike } from './store-like.js';

const SHARED = { mode: 'shared' } as const;

describe('a key that several hold', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });
  afterEach(() => world.locks.close());

  describe('shared', () => {
    it('lets callers of one process join with one question, and frees the key with the last', async () => {
      const readers = await Promise.all(Array.from({ length: 5 }, () => locks.acquire('k', SHARED)));
      expect(new Set(readers.map(({ fencingToken }) => fencingToken)).size).toBe(1);
      expect(world.events.map(([name, event]) => [name, Reflect.get(event as object, 'from')])).toEqual([
        ...Array.from({ length: 4 }, () => ['waiting', undefined]),
        ['acquired', 'backend'],
        ...Array.from({ length: 4 }, () => ['acquired', 'join']),
      ]);
      expect(readers[0]?.share).toEqual({ mode: 'shared' });
      expect(locks.inspect()).toMatchObject([{ key: 'k', share: { mode: 'shared' } }]);
      for (const reader of readers.slice(1)) await reader.release();
      expect(backend.held).toEqual(['k']);
      await readers[0]?.release();
      expect(backend.held).toEqual([]);
      expect(locks.inspect()).toEqual([]);
    });

    it('lets processes in beside each other, and a writer after the last', async () => {
      const other = world.service();
      const readers = [await locks.acquire('k', SHARED), await other.acquire('k', SHARED)];
      expect(await other.tryAcquire('k')).toBeNull();
      const writing = other.acquire('k');
      await clock.advance(1);
      await readers[0]?.release();
      await clock.advance(1);
      expect(other.inspect()).toMatchObject([{ share: { mode: 'shared' } }]);
      await readers[1]?.release();
      const writer = await writing;
      expect(writer.share).toBeUndefined();
      expect(writer.fencingToken).toBeGreaterThan(readers[1]?.fencingToken ?? 0n);
      await writer.release();
      await other.close();
    });

    it('stands behind a writer who waits, once a lease has been joined for long enough', async () => {
      const other = world.service();
      const first = await locks.acquire('k', SHARED);
      const writing = other.acquire('k', { waitMs: 60_000 });
      await clock.advance(99);
      const joined = await locks.acquire('k', SHARED);
      await clock.advance(1);
      const later = locks.acquire('k', { ...SHARED, waitMs: 60_000 });
      await Promise.all([first.release(), joined.release()]);
      const writer = await writing;
      expect(locks.inspect()).toEqual([]);
      await writer.release();
      await (await later).release();
      await other.close();
    });

    it('tells all who joined of a loss, and the next ones get a lease of their own', async () => {
      const readers = await Promise.all([1, 2, 3].map(() => locks.acquire('k', SHARED)));
      backend.revoke('k');
      expect(readers.map(({ signal, isHeld }) => [signal.aborted, isHeld])).toEqual(readers.map(() => [true, false]));
      const next = await locks.acquire('k', SHARED);
      expect(next.fencingToken).toBeGreaterThan(readers[0]?.fencingToken ?? 0n);
      for (const reader of readers) await reader.release();
      expect(next.isHeld).toBe(true);
      await next.release();
      expect(backend.held).toEqual([]);
    });

    it('joins no lease that was shown, that is not renewed, or of another time to live', async () => {
      const shown = await locks.acquire('k', SHARED);
      shown.sequencer();
      const others = [
        await locks.acquire('k', SHARED),
        await locks.acquire('k', { ...SHARED, watchdog: false }),
        await locks.acquire('k', { ...SHARED, ttlMs: 5_000 }),
        await locks.acquire('k', { ...SHARED, maxHoldMs: 1_000 }),
      ];
      expect(new Set([shown, ...others].map(({ fencingToken }) => fencingToken)).size).toBe(5);
      for (const lock of [shown, ...others]) await lock.release();
      expect(backend.held).toEqual([]);
    });

    it('gives up alone: who aborts leaves the others inside', async () => {
      const writer = await world.service().acquire('k');
      const quitter = new AbortController();
      const [first, second, third] = [
        locks.acquire('k', { ...SHARED, signal: quitter.signal }),
        locks.acquire('k', SHARED),
        locks.acquire('k', { ...SHARED, waitMs: 50 }),
      ];
      const [gone, late] = [first, third].map((reading) => reading.catch((error: unknown) => error));
      await clock.advance(10);
      quitter.abort(new Error('enough'));
      await expect(gone).resolves.toMatchObject({ message: 'enough' });
      await clock.advance(40);
      await expect(late).resolves.toBeInstanceOf(LockTimeoutError);
      await writer.release();
      const reader = await second;
      expect(reader.isHeld).toBe(true);
      await reader.release();
      expect(backend.held).toEqual([]);
    });

    it('is waited for by drain and by shutdown', async () => {
      const service = world.service();
      const readers = await Promise.all([1, 2].map(() => service.acquire('k', SHARED)));
      const drained = service.drain(60_000);
      for (const reader of readers) await reader.release();
      await expect(drained).resolves.toBe(true);
      await service.close();
    });
  });

  describe('re-entrancy', () => {
    const again = { reentrant: true };
    const within = (options: object, work: (lock: LockHandle) => Promise<unknown>): Promise<unknown> =>
      locks.withLock('k', work, { ...options, ...again });

    it('covers what is less than the call tree has', async () => {
      await within({}, async () => {
        await (await locks.acquire('k', { ...SHARED, ...again })).release();
        await (await locks.acquire('k', { limit: 3, ...again })).release();
      });
      await within(SHARED, async () => (await locks.acquire('k', { ...SHARED, ...again })).release());
      await within({ limit: 5, permits: 3 }, async () =>
        (await locks.acquire('k', { limit: 5, permits: 2, ...again })).release(),
      );
      expect(world.events.filter(([, event]) => Reflect.get(event as object, 'from') === 're-entry')).toHaveLength(4);
      expect(backend.held).toEqual([]);
    });

    it('refuses more at once, with what to do', async () => {
      const upgrades = [
        [SHARED, again],
        [{ limit: 5 }, { limit: 5, permits: 2, ...again }],
        [{ limit: 5 }, again],
      ] as const;
      for (const [has, asks] of upgrades) {
        await within(has, async () => {
          await expect(locks.acquire('k', asks)).rejects.toThrow(LockDeadlockError);
          await expect(locks.acquire('k', asks)).rejects.toThrow('Release it, take it for all that the work needs');
          await expect(locks.tryAcquire('k', asks)).resolves.toBeNull();
        });
      }
    });

    it('does not hang behind a writer who waits', async () => {
      const other = world.service();
      let writing: Promise<LockHandle> | undefined;
      await within(SHARED, async () => {
        writing = other.acquire('k', { waitMs: 60_000 });
        await clock.advance(200);
        await (await locks.acquire('k', { ...SHARED, ...again })).release();
      });
      await (await writing)?.release();
      await other.close();
    });

    it('is over for who has left a lock that others of the process still share', async () => {
      const other = await locks.acquire('k', SHARED);
      let later: Promise<LockHandle> | undefined;
      let go = (): void => undefined;
      await within(SHARED, async () => {
        later = new Promise<void>((resolve) => (go = resolve)).then(() =>
          locks.acquire('k', { ...SHARED, ttlMs: 7_000 }),
        );
      });
      go();
      const lock = await later;
      expect(lock?.fencingToken).not.toBe(other.fencingToken);
      await lock?.release();
      await other.release();
    });
  });

  it('is joined only by those who agree about re-entries', async () => {
    const [first, second] = [
      await locks.acquire('k', SHARED),
      await locks.acquire('k', { ...SHARED, reentrant: true }),
    ];
    expect(second.fencingToken).not.toBe(first.fencingToken);
    await second.run(async () => {
      await (await locks.acquire('k', { ...SHARED, reentrant: true })).release();
    });
    await expect(first.run(() => locks.acquire('k', SHARED))).rejects.toMatchObject({ code: 'LOCK_DEADLOCK' });
    await Promise.all([first.release(), second.release()]);
  });

  it('is refused with options that can never work', async () => {
    const cases = [
      [{ mode: 'open' }, 'mode must be one of exclusive, shared; it was "open"'],
      [{ permits: 2 }, 'permits needs a limit'],
      [{ limit: 0 }, 'limit must be a whole number from 1 to 10000; it was 0'],
      [{ limit: 2, permits: 3 }, 'permits must be a whole number from 1 to 2; it was 3'],
      [{ limit: 2, mode: 'shared' }, 'limit is for permits'],
    ] as const;
    for (const [options, message] of cases) {
      await expect(locks.acquire('k', options as object)).rejects.toThrow(message);
    }
    for (const defaults of [SHARED, { limit: 2 }]) {
      expect(() => new Service(backend, { defaults })).toThrow(LockConfigurationError);
    }
    const single = new Service(storeLike(backend, { name: 'single' }));
    await expect(single.acquire('k', SHARED)).rejects.toThrow('keeps one holder a key');
    await expect(single.acquire('k', { limit: 2 })).rejects.toThrow('More than one at a time');
    expect(() => single.resolve({ limit: 3 })).toThrow(LockConfigurationError);
    await single.close();
  });
});
