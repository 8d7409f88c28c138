import { beforeEach, describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import {
  type AcquireRequest,
  Deadline,
  type LeaseAttempt,
  type LeaseStore,
  LockBackendError,
  LockBackend,
} from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { eventually } from '../support/eventually.js';
import { type Call, LossyStore } from './lossy-store.js';

const loseReply = async <T>(call: Call<T>): Promise<T> => {
  await call();
  throw new Error('connection lost');
};
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

describe('LockBackend', () => {
  let clock: ManualClock;
  let store: LossyStore;
  let backend: LockBackend;
  let owners = 0;

  const request = (waitMs: number, extra: Partial<AcquireRequest> = {}): AcquireRequest => ({
    owner: `owner ${++owners}`,
    ttlMs: 1_000,
    deadline: Deadline.after(waitMs, clock),
    metadata: { host: 'here', pid: 1 },
    ...extra,
  });
  const occupy = (): Promise<LeaseAttempt> =>
    store.inner.tryAcquire('k', 'stranger', 60_000, { host: 'there', pid: 2 });

  beforeEach(() => {
    clock = new ManualClock();
    store = new LossyStore(new MemoryLeaseStore(clock));
    backend = new LockBackend(store, { pollMs: 100, patienceMs: 500 });
  });

  it('has the TTL limits of its store, and asks it for nothing else', async () => {
    const limited = new LockBackend(Object.assign(store, { ttlLimits: { minMs: 2_000, maxMs: 3_000 } }));
    expect(limited.store.ttlLimits).toEqual({ minMs: 2_000, maxMs: 3_000 });
    await expect(limited.acquire('k', request(0))).rejects.toThrow(
      'ttlMs must be from 2000 to 3000 with lossy; it was 1000',
    );
    expect(store.asked).toEqual([]);
  });

  it('asks once and never again when the deadline is past already', async () => {
    await occupy();
    await expect(backend.acquire('k', request(0))).resolves.toBeNull();
    expect(store.asked).toEqual(['acquire']);
  });

  it('polls with jitter until the deadline, tells who is in the way, and leaves nothing to clean up', async () => {
    await occupy();
    const seen: unknown[] = [];
    const waiting = backend.acquire('k', request(1_000, { blockedBy: (by) => seen.push(by) }));
    await clock.advance(1_000);
    await expect(waiting).resolves.toBeNull();
    expect(seen.length).toBeGreaterThanOrEqual(6);
    expect(seen.length).toBeLessThanOrEqual(21);
    for (const by of seen) expect(by).toMatchObject({ pid: 2 });
    expect(store.asked).not.toContain('release');
  });

  it('lets others ask first when it is told to, unless its time is short', async () => {
    const yielding = backend.acquire('k', request(5_000, { yields: true }));
    await clock.advance(200);
    await expect(yielding).resolves.toMatchObject({ sentAt: 155 });
    const hurried = backend.acquire('other', request(20, { yields: true }));
    await clock.advance(20);
    await expect(hurried).resolves.toMatchObject({ sentAt: 210 });
    await expect(backend.acquire('third', request(0, { yields: true }))).resolves.toMatchObject({ sentAt: 220 });
  });

  it('asks when the lease of the holder ends, not a poll later', async () => {
    backend = new LockBackend(store, { pollMs: 10_000 });
    await store.inner.tryAcquire('k', 'stranger', 300, { host: 'there', pid: 2 });
    const waiting = backend.acquire('k', request(5_000));
    await clock.advance(305);
    await expect(waiting).resolves.toMatchObject({ sentAt: 305 });
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
    expect(store.inner.keys()).toEqual([]);
  });

  it('goes on freeing until the server confirms it', async () => {
    store.carry = (call, operation) => (operation === 'release' ? Promise.reject(new Error('down')) : loseReply(call));
    await expect(backend.acquire('k', request(0))).rejects.toThrow('lossy could not acquire "k": connection lost');
    await clock.advance(300);
    expect(store.inner.keys()).toEqual(['k']);
    store.carry = (call) => call();
    await clock.advance(400);
    expect(store.inner.keys()).toEqual([]);
  });

  it('goes on giving back a lease whose release failed, after it has told the caller', async () => {
    const lease = await backend.acquire('k', request(0));
    store.carry = () => Promise.reject(new Error('down'));
    await expect(lease?.release()).rejects.toThrow('down');
    await clock.advance(100);
    expect(store.inner.keys()).toEqual(['k']);
    store.carry = (call) => call();
    await clock.advance(200);
    expect(store.inner.keys()).toEqual([]);
  });

  it('releases the owner of a refusal that says it is still in line', async () => {
    const ask = store.tryAcquire.bind(store);
    // The key stands for a place in line that could not be taken away.
    store.tryAcquire = (...call) =>
      ask(...call).then(() => ({ acquired: false, retryAfterMs: null, staysInLine: true }));
    await expect(backend.acquire('k', request(0))).resolves.toBeNull();
    await eventually(() => expect(store.asked).toEqual(['acquire', 'release']));
    expect(store.inner.keys()).toEqual([]);
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
    await eventually(() => expect(store.inner.keys()).toEqual([]));
    expect(most).toBeLessThanOrEqual(50);
    expect(store.asked.filter((operation) => operation === 'release')).toHaveLength(500);
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
    expect(store.inner.keys()).toEqual([]);
  });

  it('does not trust a lease whose answer came after its end', async () => {
    store.carry = async (call) => {
      const answer = await call();
      clock.stall(1_000);
      return answer;
    };
    const acquiring = backend.acquire('k', request(3_000));
    const refused = expect(acquiring).rejects.toThrow('the answer came after the lease had ended');
    await clock.advance(3_000);
    await refused;
    expect(store.inner.keys()).toEqual([]);
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
    const first = backend.acquire('k', request(3_000, { blockedBy: (by) => seen.push(by) }));
    const refused = expect(first).rejects.toThrow('lossy could not acquire "k": no connection free');
    await clock.advance(2_999);
    expect(new Set(seen)).toEqual(new Set([obstacle]));
    await clock.advance(1);
    await refused;
  });

  it('tells the store until when the caller waits', async () => {
    const until: unknown[] = [];
    store.tryAcquire = (...[, , , , asker]: Parameters<LeaseStore['tryAcquire']>) => {
      until.push(asker?.deadline.at);
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
    expect(store.inner.keys()).toEqual(['k']);
  });

  it('hears a store out that was asked right before the deadline', async () => {
    await occupy();
    store.carry = async (call) => {
      await new Promise<void>((resolve) => void clock.schedule(40, resolve));
      return call();
    };
    const seen: unknown[] = [];
    const refused = backend.acquire('k', request(1, { blockedBy: (by) => seen.push(by) }));
    const granted = backend.acquire('free', request(1));
    await clock.advance(40);
    await expect(refused).resolves.toBeNull();
    expect(seen).toMatchObject([{ pid: 2 }]);
    await expect(granted).resolves.toMatchObject({ sentAt: 0 });
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

  it('gives up at once with the reason of the signal, waiting or asking, and leaves no listener', async () => {
    for (const carry of [store.carry, () => never()] as const) {
      await occupy();
      store.carry = carry as LossyStore['carry'];
      const controller = new AbortController();
      const acquiring = backend.acquire('k', request(10_000, { signal: controller.signal }));
      await clock.advance(10);
      controller.abort('enough');
      await expect(acquiring).rejects.toBe('enough');
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    }
  });

  describe('with more callers than a store is asked for at a time', () => {
    const MOST_ASKED = 5_000;
    let answers: (() => void)[];

    beforeEach(() => {
      answers = [];
      store.carry = async (call) => {
        await new Promise<void>((answer) => answers.push(answer));
        return call();
      };
      for (let i = 0; i < MOST_ASKED; i += 1) backend.acquire(`first ${i}`, request(10_000)).catch(() => undefined);
    });

    it('asks for the others as answers come, in their order', async () => {
      const granted: string[] = [];
      const acquiring = ['a', 'b', 'c'].map(async (key) => {
        await backend.acquire(key, request(10_000));
        granted.push(key);
      });
      expect(answers).toHaveLength(MOST_ASKED);
      for (const answer of answers) answer();
      await eventually(() => expect(answers).toHaveLength(MOST_ASKED + 3));
      for (const answer of answers) answer();
      await Promise.all(acquiring);
      expect(granted).toEqual(['a', 'b', 'c']);
    });

    it('lets each of the others have its own deadline, patience, signal and dismissal', async () => {
      const controller = new AbortController();
      const said = 'lossy could not acquire "k": very many acquisitions of this process wait for an answer already';
      const late = expect(backend.acquire('k', request(200))).rejects.toThrow(said);
      const impatient = expect(backend.acquire('k', request(0))).rejects.toThrow(said);
      const calledOff = expect(backend.acquire('k', request(9_000, { signal: controller.signal }))).rejects.toBe(
        'enough',
      );
      const dismissed = expect(backend.acquire('k', request(9_000))).rejects.toBe('over');
      controller.abort('enough');
      await calledOff;
      await clock.advance(300);
      await late;
      await clock.advance(300);
      await impatient;
      backend.dismiss('over');
      await dismissed;
      expect(store.asked).toHaveLength(MOST_ASKED);
    });

    it('asks at once for whoever inherits a place in the line', () => {
      backend.acquire('k', request(10_000, { inherited: true, pass: () => false })).catch(() => undefined);
      expect(answers).toHaveLength(MOST_ASKED + 1);
    });
  });

  it('asks as soon as the store wakes it, also when that happens while it asks', async () => {
    let wake = (): void => undefined;
    let watching = 0;
    store.watch = (_key, _owner, callback) => {
      watching += 1;
      wake = callback;
      return () => void (watching -= 1);
    };
    backend = new LockBackend(store);
    await occupy();
    const acquiring = backend.acquire('k', request(10_000));
    await clock.advance(1);
    await store.inner.release('k', 'stranger');
    wake();
    await expect(acquiring).resolves.toMatchObject({ sentAt: 1 });
    expect(watching).toBe(0);

    store.inner.revoke('k');
    await occupy();
    store.carry = async (call) => {
      const answer = await call();
      await store.inner.release('k', 'stranger');
      wake();
      return answer;
    };
    await expect(backend.acquire('k', request(10_000))).resolves.toMatchObject({ sentAt: 1 });
  });
});
