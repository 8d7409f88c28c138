import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { getEventListeners, getMaxListeners } from 'node:events';
import {
  LockBackendError,
  LockConfigurationError,
  type LockHandle,
  LockService,
  LockShutdownError,
  LockTimeoutError,
  LockBackend,
} from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { type ManualClock, type TestLockBackend } from 'nestjs-distributed-lock/testing';
import { LossyStore } from './lossy-store.js';
import { ServiceWorld } from './service-world.js';

describe('LockService', () => {
  let world: ServiceWorld;
  let clock: ManualClock;
  let backend: TestLockBackend;
  let locks: LockService;

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

  describe('failure', () => {
    it('is no time-out: the error says what could not be done, and to whom', async () => {
      backend.breakDown(new Error('connection refused'));
      await expect(locks.acquire('k')).rejects.toThrow('test could not acquire "k": connection refused');
      await expect(locks.tryAcquire('k')).rejects.toThrow(LockBackendError);
      backend.repair();
      await (await locks.acquire('k')).release();
    });

    it('is told to all who wait here for the key, at once and not one after the other', async () => {
      const release = await backend.occupy('k');
      const waiting = Promise.allSettled(Array.from({ length: 20 }, () => locks.acquire('k')));
      await clock.advance(1);
      backend.breakDown(new Error('connection refused'));
      const outcomes = await waiting;
      expect(clock.now()).toBe(1);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_BACKEND', backend: 'test' } });
      }
      backend.repair();
      await release();
      await (await locks.acquire('k')).release();
    });

    it('is told to one whose time is up while another one of this process asks in vain', async () => {
      const store = new LossyStore(new MemoryLeaseStore(clock));
      store.carry = () => Promise.reject(new Error('connection refused'));
      await using patient = new LockService(() => new LockBackend(store, { patienceMs: 1_500 }), { clock });
      const waits = [5_000, 100, 200, 10_000].map((waitMs) => patient.acquire('k', { waitMs }));
      const settled = Promise.allSettled(waits);
      await clock.advance(0);
      await expect(patient.tryAcquire('k')).rejects.toThrow('lossy could not acquire "k": connection refused');
      await clock.advance(2_100);
      for (const outcome of await settled) expect(outcome).toMatchObject({ reason: { code: 'LOCK_BACKEND' } });
      expect(store.asked.filter((call) => call === 'acquire').length).toBeLessThan(20);
      // It is forgotten as soon as the backend says otherwise.
      store.carry = (call) => call();
      await store.inner.tryAcquire('k', 'stranger', 60_000, { host: 'there', pid: 2 });
      const refused = Promise.allSettled([1, 2].map(() => patient.acquire('k', { waitMs: 100 })));
      await clock.advance(100);
      for (const outcome of await refused) expect(outcome).toMatchObject({ reason: { code: 'LOCK_TIMEOUT' } });
    });

    it('of a caller with little time sends nobody else away', async () => {
      const store = new LossyStore(new MemoryLeaseStore(clock));
      await using other = new LockService(() => new LockBackend(store), { clock });
      store.carry = () => Promise.reject(new Error('connection refused'));
      const hasty = expect(other.tryAcquire('k')).rejects.toThrow(LockBackendError);
      const patient = other.acquire('k');
      await hasty;
      store.carry = (call) => call();
      await clock.advance(100);
      await (await patient).release();
    });

    it('survives an observer that throws, at once or later', async () => {
      const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      const watched = world.service({
        observers: [
          {
            acquired: () => {
              throw new Error('broken metrics');
            },
          },
          Object.assign({}, { acquired: async () => Promise.reject(new Error('late metrics')) }),
          Object.assign({}, { acquired: () => runInNewContext(`Promise.reject(new Error('foreign metrics'))`) }),
          Object.assign({}, { released: async () => Promise.reject(Object.create(null)) }),
          {
            released: () => {
              throw Object.create(null);
            },
          },
        ],
      });
      await (await watched.acquire('k')).release();
      await clock.advance(0);
      for (const text of ['broken metrics', 'late metrics', 'foreign metrics'])
        expect(warned).toHaveBeenCalledWith(expect.stringContaining(text));
      const withoutText = warned.mock.calls.filter(([warning]) => String(warning).includes('in released: an object'));
      expect(withoutText).toHaveLength(2);
      warned.mockRestore();
    });
  });

  describe('shutdown', () => {
    it('sends waiters away and lets holders finish, then tells who is left', async () => {
      const lock = await locks.acquire('k');
      const waiter = locks.acquire('k');
      locks.stop();
      await expect(waiter).rejects.toThrow(LockShutdownError);
      await expect(locks.acquire('other')).rejects.toThrow('"other" is refused: this lock service is stopped');
      expect(lock.isHeld).toBe(true);
      await lock.run(async () => (await locks.acquire('k')).release());
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

  describe('bad input', () => {
    it.each<[object, string]>([
      [{ ttlMs: 0 }, 'ttlMs must be a number from 10 to 2147483647; it was 0'],
      [{ ttlMs: 2 ** 31 }, 'ttlMs'],
      [{ ttlMs: Number.NaN }, 'ttlMs'],
      [{ waitMs: -1 }, 'waitMs must be a number from 0 up, or Infinity; it was -1'],
      [{ maxHoldMs: 0 }, 'maxHoldMs'],
      [{ ttlMs: '5s' }, 'ttlMs must be a number from 10 to 2147483647; it was "5s"'],
      [{ ttl: 5 }, 'ttl is no acquire option; there are ttlMs'],
      [{ watchdog: 1 }, 'watchdog must be true or false'],
    ])('refuses %p', async (options, message) => {
      await expect(locks.acquire('k', options)).rejects.toThrow(message);
      expect(() => world.service({ defaults: options })).toThrow(LockConfigurationError);
    });

    it('refuses impossible service options', () => {
      expect(() => world.service({ maxHandOffs: 2_048 })).toThrow(
        'maxHandOffs must be a whole number from 0 to 2047; it was 2048',
      );
      expect(() => world.service({ namespace: 'a:b' })).toThrow('because a colon ends it');
    });

    it.each<[object, string]>([
      [{ label: 7 }, 'label must be a text of 1 to 1000 characters; it was 7'],
      [{ label: 'x'.repeat(1_001) }, 'label must be a text'],
      [{ observers: { lost: () => undefined } }, 'observers must be a list of objects'],
      [{ observers: [undefined] }, 'observers must be a list of objects'],
      [{ clock: { now: () => 0 } }, 'clock must be an object with the methods now and schedule; it was { now:'],
      [{ clock: null }, 'it was null'],
    ])('refuses the service options %p', (options, message) => {
      expect(() => world.service(options)).toThrow(LockConfigurationError);
      expect(() => world.service(options)).toThrow(message);
    });

    it('refuses a TTL that the backend cannot keep, where it is given', async () => {
      const slow = Object.assign(backend, { ttlLimits: { minMs: 2_000, maxMs: 60_000 } });
      const refusal = 'ttlMs must be from 2000 to 60000 with test; it was';
      expect(() => new LockService(slow, { defaults: { ttlMs: 1_999 } })).toThrow(`${refusal} 1999`);
      await expect(locks.acquire('k', { ttlMs: 60_001 })).rejects.toThrow(`${refusal} 60001`);
      await expect(locks.tryAcquire('k', { ttlMs: 500 })).rejects.toBeInstanceOf(LockConfigurationError);
      expect(backend.held).toEqual([]);
      await (await locks.acquire('k', { ttlMs: 2_000 })).release();
    });

    it.each(['', '\ud800', 'x'.repeat(4_097), '\u00e9'.repeat(2_049), undefined, null, {}, ['a'], 42])(
      'refuses the key %p before it asks anybody',
      async (key) => {
        await expect(locks.acquire(key as string)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' });
        expect(backend.held).toEqual([]);
      },
    );

    it('keeps apart what only looks alike', async () => {
      const alike = [
        '\u00e9',
        'e\u0301',
        'E\u0301',
        'a',
        'a ',
        ' a',
        'a\n',
        'a\0',
        '*',
        '__proto__',
        'constructor',
        'a/b',
      ];
      for (const key of alike) expect(await locks.tryAcquire(key)).not.toBeNull();
      expect(backend.held).toHaveLength(alike.length);
    });
  });
});
