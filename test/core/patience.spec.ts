import { type LeaseStore, LockBackendError, LockBackend } from 'nestjs-distributed-lock/core';
import { BackendWorld, never } from './backend-world.js';

describe('patience of LockBackend', () => {
  let { clock, store, backend, request, occupy } = new BackendWorld();

  beforeEach(() => {
    ({ clock, store, backend, request, occupy } = new BackendWorld());
  });

  it('loses patience with a store that keeps failing, though the caller would wait longer', async () => {
    store.carry = () => Promise.reject(new Error('connection refused'));
    const acquiring = backend.acquire('k', request(60_000));
    const refused = expect(acquiring).rejects.toThrow('connection refused');
    await clock.advance(1_500);
    await refused;
  });

  it('says at the deadline that nobody answers, not that somebody holds the key', async () => {
    await occupy();
    const first = backend.acquire('k', request(300));
    await clock.advance(10);
    store.carry = () => never();
    const refused = expect(first).rejects.toThrow(LockBackendError);
    await clock.advance(300);
    await refused;
  });

  it('waits on for a store that could not ask yet, for longer than for failures, and says at the deadline why', async () => {
    const obstacle = new Error('no connection free');
    store.watch = () => () => undefined;
    store.tryAcquire = () => Promise.resolve({ acquired: false, retryAfterMs: null, obstacle });
    const seen: unknown[] = [];
    const first = backend.acquire('k', request(3_000, { onBlocked: (by) => seen.push(by) }));
    const refused = expect(first).rejects.toThrow('lossy could not acquire "k": no connection free');
    await clock.advance(2_999);
    expect(new Set(seen)).toEqual(new Set([obstacle]));
    await clock.advance(1);
    await refused;
  });

  it('tells the store until when the caller waits', async () => {
    const until: unknown[] = [];
    store.tryAcquire = (...[, , , , caller]: Parameters<LeaseStore['tryAcquire']>) => {
      until.push(caller?.deadline.at);
      return Promise.resolve({ acquired: true, fencingToken: 1n });
    };
    for (const waitMs of [0, 300]) await backend.acquire('k', request(waitMs));
    expect(until).toEqual([0, 300]);
  });

  it('forgets why a store could not ask once it could', async () => {
    let wake = (): void => undefined;
    store.watch = (_key, _owner, callback) => {
      wake = callback;
      return () => undefined;
    };
    await occupy();
    const ask = store.tryAcquire.bind(store);
    store.tryAcquire = () =>
      Promise.resolve({ acquired: false, retryAfterMs: null, obstacle: new Error('no connection free') });
    const waiting = backend.acquire('k', request(1_000));
    await clock.advance(1);
    store.tryAcquire = ask;
    wake();
    await clock.advance(999);
    await expect(waiting).resolves.toBeNull();
  });

  it('says at the deadline that somebody holds the key when the last answer said so and the next is on its way', async () => {
    await occupy();
    backend = new LockBackend(store, { pollMs: 1 });
    store.carry = async (call) => {
      await new Promise<void>((resolve) => void clock.schedule(40, resolve));
      return call();
    };
    const waiting = backend.acquire('k', request(150));
    const late = expect(waiting).resolves.toBeNull();
    await clock.advance(300);
    await late;
  });

  it('takes a slow answer for a time-out, as long as it is no slower than those that came', async () => {
    await occupy();
    backend = new LockBackend(store, { pollMs: 20 });
    store.carry = async (call) => {
      await new Promise<void>((resolve) => void clock.schedule(150, resolve));
      return call();
    };
    const waits = Array.from({ length: 20 }, (_, i) => backend.acquire('k', request(300 + 10 * i)));
    const late = expect(Promise.all(waits)).resolves.toEqual(waits.map(() => null));
    await clock.advance(1_000);
    await late;
    expect(store.inner.held()).toEqual(['k']);
  });

  it('hears a store out that was asked right before the deadline', async () => {
    await occupy();
    store.carry = async (call) => {
      await new Promise<void>((resolve) => void clock.schedule(40, resolve));
      return call();
    };
    const seen: unknown[] = [];
    const refused = backend.acquire('k', request(1, { onBlocked: (by) => seen.push(by) }));
    const granted = backend.acquire('free', request(1));
    await clock.advance(40);
    await expect(refused).resolves.toBeNull();
    expect(seen).toMatchObject([{ pid: 2 }]);
    await expect(granted).resolves.toMatchObject({ times: { sentAt: 0 } });
  });

  it('does not hear a store out when the caller has given up', async () => {
    const controller = new AbortController();
    store.carry = () => never();
    const acquiring = backend.acquire('k', request(1, { signal: controller.signal }));
    await clock.advance(20);
    controller.abort('enough');
    await expect(acquiring).rejects.toBe('enough');
  });

  it('takes no silence for one that fell into a blocked event loop', async () => {
    await occupy();
    store.carry = async (call) => {
      // As a socket is read: after the timers that are due, the deadline and what it schedules.
      for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      return call();
    };
    const acquiring = backend.acquire('k', request(100));
    clock.stall(300);
    await clock.advance(0);
    await expect(acquiring).resolves.toBeNull();
  });
});
