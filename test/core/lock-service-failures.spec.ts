import { jest } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { LockBackendError, LockService, LockBackend } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { LossyStore } from './lossy-store.js';
import { ServiceWorld } from './service-world.js';

describe('LockService', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });
  afterEach(() => world.locks.close());

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

    it('is told to who waits behind a request without an answer, and a caller that does not wait gets null', async () => {
      const store = new LossyStore(new MemoryLeaseStore(clock));
      let answer: () => void = () => undefined;
      const silence = new Promise<void>((resolve) => (answer = resolve));
      store.carry = (call) => silence.then(call);
      await using silent = new LockService(() => new LockBackend(store), { clock });
      const waits = [10_000, 300, 250, 1_000].map((waitMs) => silent.acquire('k', { waitMs }));
      const settled = Promise.allSettled(waits);
      await clock.advance(1_000);
      await expect(silent.tryAcquire('k')).resolves.toBeNull();
      answer();
      await clock.advance(0);
      const [first, ...others] = await settled;
      expect(first).toMatchObject({ status: 'fulfilled' });
      for (const other of others) expect(other).toMatchObject({ reason: { code: 'LOCK_BACKEND' } });
      // The key is merely held from now on.
      const late = expect(silent.acquire('k', { waitMs: 300 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      await clock.advance(300);
      await late;
    });

    it('is told to who waits behind a poll without an answer, and the next answer says again that the key is held', async () => {
      const store = new LossyStore(new MemoryLeaseStore(clock));
      await store.inner.tryAcquire('k', 'stranger', 60_000, { host: 'there', pid: 2 });
      await using silent = new LockService(() => new LockBackend(store), { clock });
      const first = silent.acquire('k', { waitMs: 60_000 });
      await clock.advance(0);
      let answer: () => void = () => undefined;
      const silence = new Promise<void>((resolve) => (answer = resolve));
      store.carry = (call) => silence.then(call);
      const behind = expect(silent.acquire('k', { waitMs: 5_000 })).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
      await clock.advance(5_000);
      await behind;
      store.carry = (call) => call();
      answer();
      await clock.advance(0);
      const late = expect(silent.acquire('k', { waitMs: 300 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      await clock.advance(300);
      await late;
      await store.inner.release('k', 'stranger');
      await clock.advance(5_000);
      await (await first).release();
    });

    it('is still told while the next poll has no answer', async () => {
      const store = new LossyStore(new MemoryLeaseStore(clock));
      await using broken = new LockService(() => new LockBackend(store), { clock });
      store.carry = () => Promise.reject(new Error('connection refused'));
      const patient = broken.acquire('k', { waitMs: 60_000 });
      await clock.advance(0);
      let answer: () => void = () => undefined;
      const silence = new Promise<void>((resolve) => (answer = resolve));
      store.carry = (call) => silence.then(call);
      await clock.advance(1_000);
      await expect(broken.tryAcquire('k')).rejects.toThrow('connection refused');
      answer();
      await (await patient).release();
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
});
