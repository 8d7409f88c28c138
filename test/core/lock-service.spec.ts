import { jest } from '@jest/globals';
import { getEventListeners, getMaxListeners } from 'node:events';
import { oncePer } from 'nestjs-distributed-lock';
import { type LockHandle, LockShutdownError, LockTimeoutError, LockBackend } from 'nestjs-distributed-lock/core';
import { ServiceWorld } from './service-world.js';

describe('LockService', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });
  afterEach(() => world.locks.close());

  describe('one at a time', () => {
    it('lets callers in one by one, in the order of arrival, with growing tokens', async () => {
      const order: number[] = [];
      const tokens: bigint[] = [];
      let inside = 0;
      const work = (i: number) => async (lock: LockHandle) => {
        expect(++inside).toBe(1);
        await new Promise(setImmediate);
        order.push(i);
        tokens.push(lock.fencingToken);
        inside -= 1;
      };
      await Promise.all(Array.from({ length: 50 }, (_, i) => locks.withLock('k', work(i))));
      expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
      expect(tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? token))).toBe(true);
    });

    it('names the holder in a time-out, here and elsewhere', async () => {
      const lock = await locks.acquire('sale');
      const refused = expect(locks.acquire('sale', { waitMs: 20 })).rejects.toThrow(
        new LockTimeoutError('sale', { waitMs: 20, holder: { host: '', label: 'api-2', pid: process.pid } }),
      );
      await clock.advance(20);
      await refused;
      await lock.release();
      await backend.occupy('sale');
      await expect(locks.acquire('sale', { waitMs: 0 })).rejects.toThrow(
        '"sale" is held by stranger 1 (pid 0), and waitMs is 0',
      );
    });

    it('never waits in tryAcquire', async () => {
      await using _lock = await locks.acquire('k');
      await expect(locks.tryAcquire('k')).resolves.toBeNull();
      await backend.occupy('other');
      await expect(locks.tryAcquire('other')).resolves.toBeNull();
    });

    it('runs work in tryWithLock under a free key only', async () => {
      const inside = await locks.tryWithLock('k', async ({ isHeld }) => {
        await expect(locks.acquire('k', { waitMs: 0, reentrant: false })).rejects.toThrow();
        return isHeld;
      });
      expect(inside).toBe(true);
      await expect(locks.tryWithLock('k', () => Promise.reject(new Error('of the work')))).rejects.toThrow(
        'of the work',
      );
      expect(locks.inspect()).toEqual([]);
      await backend.occupy('k');
      const work = jest.fn<() => void>();
      await expect(locks.tryWithLock('k', work, oncePer(60_000))).resolves.toBeUndefined();
      expect(work).not.toHaveBeenCalled();
    });

    it('refuses the one waiter too many', async () => {
      const few = world.service({ maxWaiters: 1 });
      const lock = await few.acquire('k');
      const second = few.acquire('k');
      await expect(few.acquire('k')).rejects.toThrow(/1 callers .*maxWaiters/u);
      await lock.release();
      await (await second).release();
    });

    it('keeps keys of another namespace apart', async () => {
      const shop = world.service({ namespace: 'shop' });
      await using _a = await locks.acquire('k');
      await using b = await shop.acquire('k');
      expect(b.key).toBe('k');
      expect(backend.held.toSorted()).toEqual(['k', 'shop:k']);
    });

    it('names keys with their namespace in events and in errors', async () => {
      const told: string[] = [];
      const note = ({ key }: { key: string }): unknown => told.push(key);
      const shop = world.service({ namespace: 'shop', observers: [{ acquired: note, timedOut: note }] });
      const lock = await shop.acquire('k');
      const refusals = [
        shop.acquire('k', { waitMs: 0 }),
        lock.run(() => shop.acquire('k', { reentrant: false })),
        lock.release().then(() => lock.assertHeld()),
      ];
      const outcomes = await Promise.allSettled(refusals);
      await shop.close();
      outcomes.push(...(await Promise.allSettled([shop.acquire('k')])));
      expect(outcomes).toMatchObject([
        { reason: { code: 'LOCK_TIMEOUT', key: 'shop:k' } },
        { reason: { code: 'LOCK_DEADLOCK', key: 'shop:k', held: ['shop:k'] } },
        { reason: { code: 'LOCK_LOST', key: 'shop:k' } },
        { reason: { code: 'LOCK_SHUTDOWN', key: 'shop:k' } },
      ]);
      expect(told).toEqual(['shop:k', `${shop.keyPrefix}k`]);
    });
  });

  describe('waiting', () => {
    it('gives up with the reason of the signal, and leaves no listener', async () => {
      await using _lock = await locks.acquire('k');
      const controller = new AbortController();
      const waiting = locks.acquire('k', { signal: controller.signal });
      const reason = new Error('the client went away');
      controller.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      await expect(locks.acquire('free', { signal: controller.signal })).rejects.toBe(reason);
      expect(backend.held).toEqual(['k']);
    });

    it('gives one signal of all callers one listener, here and in the backend, and takes it away at the end', async () => {
      const { signal } = new AbortController();
      const mostListeners = getMaxListeners(signal);
      const acquire = jest.spyOn(LockBackend.prototype, 'acquire');
      const [held, free] = [await locks.acquire('k'), await backend.occupy('elsewhere 0')];
      for (let i = 1; i < 50; i += 1) await backend.occupy(`elsewhere ${i}`);
      const waiting = Array.from({ length: 50 }, (_, i) => [
        locks.acquire('k', { signal }),
        locks.acquire(`elsewhere ${i}`, { signal }),
        locks.acquire(`elsewhere ${i}`),
      ]).flat();
      const refused = Promise.allSettled(waiting);
      await clock.advance(1);
      const asked = new Set(acquire.mock.calls.map(([, request]) => request.signal));
      for (const each of asked) expect(getEventListeners(each ?? signal, 'abort').length).toBeLessThanOrEqual(1);
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      expect(getMaxListeners(signal)).toBe(mostListeners);
      await clock.advance(10_000);
      await refused;
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      await Promise.all([held.release(), free()]);
    });

    it('sends all away who share a signal', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      await backend.occupy('elsewhere');
      const first = await locks.acquire('k');
      const waiting = ['k', 'k', 'elsewhere', 'elsewhere'].map((key) => locks.acquire(key, { signal }));
      const refused = Promise.allSettled(waiting);
      await clock.advance(1);
      const reason = new Error('enough');
      controller.abort(reason);
      expect(await refused).toEqual(waiting.map(() => ({ status: 'rejected', reason })));
      await first.release();
    });

    it('passes on a lease that arrived together with the abort', async () => {
      const lock = await locks.acquire('k');
      const controller = new AbortController();
      const aborted = locks.acquire('k', { signal: controller.signal });
      const next = locks.acquire('k');
      const released = lock.release();
      controller.abort(new Error('too late'));
      await expect(aborted).rejects.toThrow('too late');
      await released;
      await (await next).release();
      expect(backend.held).toEqual([]);
    });
  });

  describe('release', () => {
    it('never rejects and never hides the result, and is told to observers', async () => {
      const result = locks.withLock('k', () => {
        backend.breakDown();
        return 'sold';
      });
      await expect(result).resolves.toBe('sold');
      expect(world.names).toContain('backendFailed');
      backend.repair();
    });

    it('is done once, however often it is asked for', async () => {
      const lock = await locks.acquire('k');
      await Promise.all([lock.release(), lock.release()]);
      await lock.release();
      expect(world.names.filter((name) => name === 'released')).toHaveLength(1);
    });
  });

  describe('shutdown', () => {
    it('sends waiters away and lets holders finish, then tells who is left', async () => {
      const lock = await locks.acquire('k', { reentrant: true });
      const waiter = locks.acquire('k');
      locks.stop();
      await expect(waiter).rejects.toThrow(LockShutdownError);
      await expect(locks.acquire('other')).rejects.toThrow('"other" is refused: this lock service is stopped');
      expect(lock.isHeld).toBe(true);
      await lock.run(async () => (await locks.acquire('k', { reentrant: true })).release());
      await locks.close();
      expect(lock.signal.reason).toMatchObject({ reason: 'shutdown' });
      expect(backend.held).toEqual([]);
    });

    it('sends away the one who asks the backend', async () => {
      await backend.occupy('k');
      const waiter = locks.acquire('k');
      await clock.advance(1);
      locks.stop();
      await expect(waiter).rejects.toThrow(LockShutdownError);
    });
  });
});
