import { jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type LeaseStore,
  LockConfigurationError,
  type LockEvents,
  LockService,
  type LockServiceOptions,
} from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { storeLike } from './store-like.js';

const LATE = { awaitRelease: false };
/** Another TTL, so that no caller inherits the lease of the one before. */
const NEXT = { ttlMs: 6_000, ...LATE };

/** Its answers to one operation are held back; all that it is asked is carried out in order. */
class SlowStore {
  readonly asked: string[] = [];
  readonly store: LeaseStore;
  #answer: (failure?: Error) => void = () => undefined;
  readonly #answered = new Promise<void>((resolve, reject) => {
    this.#answer = (failure) => (failure ? reject(failure) : resolve());
  });
  #last: Promise<unknown> = Promise.resolve();

  constructor(slow: 'release' | 'renew', keepsOrder: boolean, clock = new ManualClock()) {
    const inner = new MemoryLeaseStore(clock);
    const { asked } = this;
    this.#answered.catch(() => undefined);
    const inOrder = <T>(operation: string, carryOut: () => Promise<T>): Promise<T> => {
      asked.push(operation);
      const carried = this.#last.then(async () => {
        if (operation === slow) await this.#answered;
        const answer = await carryOut();
        if (operation === slow) asked.push(`${operation} answered`);
        return answer;
      });
      this.#last = carried.catch(() => undefined);
      return carried;
    };
    this.store = storeLike(inner, {
      name: 'slow',
      traits: { keepsOrder },
      tryAcquire: (key, owner, ttlMs, metadata) =>
        inOrder('acquire', () => inner.tryAcquire(key, owner, ttlMs, metadata)),
      renew: (...call) => inOrder('renew', () => inner.renew(...call)),
      release: (...call) => inOrder('release', () => inner.release(...call)),
    });
  }

  answer(failure?: Error): void {
    this.#answer(failure);
  }
}

describe('a call that does not wait for its release', () => {
  let locks: LockService;
  const serviceOn = ({ store }: SlowStore, options: LockServiceOptions = {}): LockService =>
    (locks = new LockService(store, options));
  afterEach(() => locks.close());

  it('lets the next caller ask right behind the release, in a store that keeps the order', async () => {
    const slow = new SlowStore('release', true);
    const service = serviceOn(slow);
    const first = service.withLock('k', () => 'first', LATE);
    const second = service.withLock('k', () => 'second', NEXT);
    await expect(first).resolves.toBe('first');
    await nextTurn();
    expect(slow.asked).toEqual(['acquire', 'release', 'acquire']);
    slow.answer();
    await expect(second).resolves.toBe('second');
    // The answer to its own release may be there by now.
    expect(slow.asked.slice(0, 5)).toEqual(['acquire', 'release', 'acquire', 'release answered', 'release']);
  });

  it('lets it ask when the release is answered, in a store that keeps no order', async () => {
    const slow = new SlowStore('release', false);
    const service = serviceOn(slow);
    const first = service.withLock('k', () => 'first', LATE);
    const second = service.withLock('k', () => 'second', NEXT);
    await expect(first).resolves.toBe('first');
    await nextTurn();
    expect(slow.asked).toEqual(['acquire', 'release']);
    slow.answer();
    await expect(second).resolves.toBe('second');
    expect(slow.asked.slice(0, 4)).toEqual(['acquire', 'release', 'release answered', 'acquire']);
  });

  it('keeps the turn until a renewal under way is over', async () => {
    const clock = new ManualClock();
    const slow = new SlowStore('renew', true, clock);
    const service = serviceOn(slow, { clock });
    let finish: () => void = () => undefined;
    const work = new Promise<void>((resolve) => (finish = resolve));
    const first = service.withLock('k', () => work, { ttlMs: 3_000, ...LATE });
    const second = service.withLock('k', () => 'second', NEXT);
    await clock.advance(1_000);
    expect(slow.asked).toEqual(['acquire', 'renew']);
    finish();
    await first;
    await nextTurn();
    expect(slow.asked).toEqual(['acquire', 'renew']);
    slow.answer();
    await expect(second).resolves.toBe('second');
    expect(slow.asked.slice(0, 5)).toEqual(['acquire', 'renew', 'renew answered', 'release', 'acquire']);
  });

  it.each([true, false])('tells observers of a release that fails, keepsOrder: %s', async (keepsOrder) => {
    const failures: LockEvents['backendFailed'][] = [];
    const slow = new SlowStore('release', keepsOrder);
    const service = serviceOn(slow, { observers: [{ backendFailed: (event) => failures.push(event) }] });
    await expect(service.withLock('k', () => 'work', LATE)).resolves.toBe('work');
    expect(failures).toEqual([]);
    slow.answer(new Error('gone'));
    await nextTurn();
    expect(failures).toMatchObject([{ key: 'k', operation: 'release' }]);
  });

  it('is one by the defaults of its service, unless it says otherwise', async () => {
    const slow = new SlowStore('release', true);
    const service = serviceOn(slow, { defaults: LATE });
    await service.withLock('k', () => undefined);
    let ended = false;
    const waiting = service.withLock('other', () => undefined, { awaitRelease: true }).then(() => (ended = true));
    await nextTurn();
    expect(ended).toBe(false);
    slow.answer();
    await waiting;
  });

  it('is over for its service only when the release is answered', async () => {
    const slow = new SlowStore('release', true);
    const service = serviceOn(slow);
    await service.withLock('k', () => undefined, LATE);
    let closed = false;
    const closing = service.close().then(() => (closed = true));
    await nextTurn();
    expect(closed).toBe(false);
    slow.answer();
    await closing;
    expect(slow.asked).toEqual(['acquire', 'release', 'release answered']);
  });

  it('is sent before the backend is closed, also when the work outlives the grace time', async () => {
    const slow = new SlowStore('release', true);
    const close = jest.spyOn(slow.store, 'close');
    const service = serviceOn(slow);
    let endWork: () => void = () => undefined;
    const work = new Promise<void>((resolve) => (endWork = resolve));
    const called = service.withLock('k', () => work, LATE).catch((error: unknown) => error);
    await nextTurn();
    await service.shutdown(0);
    endWork();
    await called;
    await nextTurn();
    expect(slow.asked).toEqual(['acquire', 'release']);
    expect(close).not.toHaveBeenCalled();
    slow.answer();
    await nextTurn();
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('says so by true or false', async () => {
    const service = serviceOn(new SlowStore('release', true));
    const wrong = { awaitRelease: 'no' as unknown as boolean };
    await expect(service.withLock('k', () => undefined, wrong)).rejects.toThrow(LockConfigurationError);
  });
});
