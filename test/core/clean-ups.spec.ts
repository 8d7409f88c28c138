import { LockBackendError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { BackendWorld, loseReply } from './backend-world.js';

describe('CleanUps of LockBackend', () => {
  let { clock, store, backend, request } = new BackendWorld();

  beforeEach(() => {
    ({ clock, store, backend, request } = new BackendWorld());
  });

  it('takes an acquire whose reply was lost for its own, with the same owner', async () => {
    store.carry = loseReply;
    const acquiring = backend.acquire('k', request(1_000));
    await clock.advance(10);
    store.carry = (call) => call();
    await clock.advance(50);
    await expect(acquiring).resolves.toMatchObject({ fencingToken: 1n });
    expect(store.asked).toEqual(['acquire', 'acquire']);
  });

  it('frees what a lost reply may have taken when it gives up', async () => {
    store.carry = loseReply;
    await expect(backend.acquire('k', request(0))).rejects.toThrow(LockBackendError);
    store.carry = (call) => call();
    await clock.advance(100);
    expect(store.inner.held()).toEqual([]);
  });

  it('goes on freeing until the server confirms it', async () => {
    store.carry = (call, operation) => (operation === 'release' ? Promise.reject(new Error('down')) : loseReply(call));
    await expect(backend.acquire('k', request(0))).rejects.toThrow('lossy could not acquire "k": connection lost');
    await clock.advance(300);
    expect(store.inner.held()).toEqual(['k']);
    store.carry = (call) => call();
    await clock.advance(400);
    expect(store.inner.held()).toEqual([]);
  });

  it('goes on giving back a lease whose release failed, after it has told the caller', async () => {
    const lease = await backend.acquire('k', request(0));
    store.carry = () => Promise.reject(new Error('down'));
    await expect(lease?.release()).rejects.toThrow('down');
    await clock.advance(100);
    expect(store.inner.held()).toEqual(['k']);
    store.carry = (call) => call();
    await clock.advance(200);
    expect(store.inner.held()).toEqual([]);
  });

  it('releases the owner of a refusal that says it is still in line', async () => {
    const ask = store.tryAcquire.bind(store);
    // The key stands for a place in line that could not be taken away.
    store.tryAcquire = (...call) =>
      ask(...call).then(() => ({ acquired: false, retryAfterMs: null, staysInLine: true }));
    await expect(backend.acquire('k', request(0))).resolves.toBeNull();
    await eventually(() => expect(store.asked).toEqual(['acquire', 'release']));
    expect(store.inner.held()).toEqual([]);
  });

  it('tries once more to free it when it closes, and waits for no longer', async () => {
    store.carry = (call, operation) => (operation === 'release' ? Promise.reject(new Error('down')) : loseReply(call));
    await expect(backend.acquire('k', request(0))).rejects.toThrow(LockBackendError);
    await clock.advance(0);
    const before = store.asked.length;
    await backend.close();
    expect(store.asked.slice(before)).toEqual(['release']);
  });

  it('frees a few at a time, and all in the end, when very many have failed at once', async () => {
    let [underWay, most] = [0, 0];
    store.carry = async (call, operation) => {
      if (operation === 'acquire') return loseReply(call);
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise(setImmediate);
      underWay -= 1;
      return call();
    };
    const keys = Array.from({ length: 500 }, (_, i) => `k${i}`);
    await Promise.all(keys.map((key) => expect(backend.acquire(key, request(0))).rejects.toThrow(LockBackendError)));
    await eventually(() => expect(store.inner.held()).toEqual([]));
    expect(most).toBeLessThanOrEqual(50);
    // The health's own probe releases its key once, too.
    await eventually(() => expect(backend.health.current.status).toBe('down'));
    expect(store.asked.filter((operation) => operation === 'release')).toHaveLength(501);
  });

  it('does not let the freeing overtake the request that it undoes', async () => {
    let carryOut = (): void => undefined;
    store.carry = (call, operation) =>
      operation === 'acquire' ? new Promise<void>((go) => (carryOut = go)).then(call) : call();
    const acquiring = backend.acquire('k', request(200));
    const refused = expect(acquiring).rejects.toThrow('no answer before the deadline');
    await clock.advance(200);
    await refused;
    expect(store.asked).toEqual(['acquire']);
    carryOut();
    await clock.advance(0);
    expect(store.asked).toEqual(['acquire', 'release']);
    expect(store.inner.held()).toEqual([]);
  });
});
