import { jest } from '@jest/globals';
import {
  LockDeadlockError,
  currentLock,
  LockLostError,
  LockService,
  LockTimeoutError,
  openBackend,
  runDetached,
  singleFlight,
  type SingleFlightOptions,
} from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { eventually, failureOf } from '../support/index.js';
import { ServiceWorld } from './service-world.js';

type Value = string | number | boolean;

/** The cache of an application, and how often it was asked for what. */
class Cache {
  readonly values = new Map<string, Value | null>();
  readonly read = jest.fn(async (): Promise<Value | null | undefined> => this.values.get('report'));
  readonly write = jest.fn(async (value: Value): Promise<void> => void this.values.set('report', value));
}

describe('single flight', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  let cache: Cache;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
    cache = new Cache();
  });
  afterEach(() => world.locks.close());

  const fly = (
    work: () => Promise<Value> | Value,
    options?: SingleFlightOptions,
    service: LockService = locks,
  ): Promise<Value> => singleFlight(service, 'k', { read: cache.read, work, write: cache.write }, options);

  /** Work that ends when the test says so. */
  const pausedWork = () => {
    let [resolve, reject] = [(_value: Value): void => undefined, (_error: Error): void => undefined];
    const result = new Promise<Value>((onValue, onError) => ([resolve, reject] = [onValue, onError]));
    return { work: jest.fn(() => result), resolve, reject };
  };

  it.each([7, 0, false, ''])('takes %p in the cache for a value, and asks the backend nothing', async (value) => {
    cache.values.set('report', value);
    backend.breakDown();
    await expect(fly(() => Promise.reject(new Error('work')))).resolves.toBe(value);
    expect(world.names).toEqual([]);
  });

  it.each([null, undefined])('takes %p in the cache for no value, and writes what the work made', async (value) => {
    if (value === null) cache.values.set('report', value);
    await expect(fly(() => 0)).resolves.toBe(0);
    expect(cache.values.get('report')).toBe(0);
    expect(backend.held).toEqual([]);
  });

  it('runs the work under the lock of its key, reads there again, and writes there', async () => {
    const heldAt: unknown[] = [];
    const note = (): undefined => void heldAt.push(currentLock()?.key);
    await singleFlight(locks, 'k', {
      read: note,
      work: (lock) => heldAt.push(lock.isHeld && lock.key),
      write: note,
    });
    expect(heldAt).toEqual([undefined, 'k', 'k', 'k']);
  });

  it('lets callers of a process share one run, and one lock', async () => {
    const { work, resolve } = pausedWork();
    const results = Array.from({ length: 100 }, () => fly(work));
    await clock.advance(1_000);
    resolve('report 7');
    expect(new Set(await Promise.all(results))).toEqual(new Set(['report 7']));
    expect(work).toHaveBeenCalledTimes(1);
    expect(cache.read).toHaveBeenCalledTimes(101);
    expect(world.names).toEqual(['acquired', 'released']);
  });

  it('has callers of other processes wait in line, and then find the value', async () => {
    await using other = world.service();
    const { work, resolve } = pausedWork();
    const callers = [fly(work), ...Array.from({ length: 10 }, () => fly(work, {}, other))];
    await clock.advance(1_000);
    expect([work.mock.calls.length, cache.read.mock.calls.length]).toEqual([1, 12]);
    resolve('report 7');
    await clock.advance(1_000);
    await expect(Promise.all(callers)).resolves.toEqual(callers.map(() => 'report 7'));
    expect([work.mock.calls.length, cache.read.mock.calls.length]).toEqual([1, 13]);
  });

  it('runs the work once for 300 callers of three services on real memory', async () => {
    const shared = openBackend(memory());
    const services = [new LockService(shared), new LockService(shared), new LockService(shared)];
    const work = jest.fn(() => new Promise<Value>((resolve) => setTimeout(resolve, 20, 7)));
    const callers = Array.from({ length: 300 }, (_, i) => fly(work, {}, services[i % 3]));
    await expect(Promise.all(callers)).resolves.toEqual(callers.map(() => 7));
    expect(work).toHaveBeenCalledTimes(1);
    expect(cache.write).toHaveBeenCalledTimes(1);
    await Promise.all(services.map((service) => service.close()));
  });

  it('shares nothing between keys', async () => {
    const run = (key: string): Promise<string> =>
      singleFlight(locks, key, { read: () => null, work: () => key, write: () => undefined });
    await expect(Promise.all(['a', 'b', 'a'].map(run))).resolves.toEqual(['a', 'b', 'a']);
  });

  // https://github.com/sindresorhus/p-memoize/issues/34: resolved before a slow cache had the value.
  it('resolves when the value is written, so that the next caller finds it', async () => {
    let finishWrite = (): void => undefined;
    const written = new Promise<void>((resolve) => (finishWrite = resolve));
    cache.write.mockImplementation(async (value) => {
      await written;
      cache.values.set('report', value);
    });
    const work = jest.fn(() => 7);
    let isResolved = false;
    const first = fly(work).finally(() => (isResolved = true));
    await clock.advance(1_000);
    expect([isResolved, backend.held]).toEqual([false, ['k']]);
    finishWrite();
    await first;
    await expect(fly(work)).resolves.toBe(7);
    expect(work).toHaveBeenCalledTimes(1);
  });

  // https://github.com/medikoo/memoizee/issues/117: a rejected promise stayed in the cache.
  it('rejects those who share a failed run, and lets the next caller try again', async () => {
    const { work, reject } = pausedWork();
    const failures = Array.from({ length: 10 }, () => failureOf(fly(work)));
    await eventually(() => work.mock.calls.length === 1);
    const error = new RangeError('no connection');
    reject(error);
    expect(new Set(await Promise.all(failures))).toEqual(new Set([error]));
    expect(work).toHaveBeenCalledTimes(1);
    expect(cache.write).not.toHaveBeenCalled();
    await expect(fly(() => 7)).resolves.toBe(7);
  });

  it('rejects those who share a run whose second read failed', async () => {
    const error = new RangeError('no cache');
    cache.read.mockImplementation(async () => {
      if (currentLock()) throw error;
      return undefined;
    });
    const work = jest.fn(() => 7);
    await expect(Promise.all([failureOf(fly(work)), failureOf(fly(work))])).resolves.toEqual([error, error]);
    expect(work).not.toHaveBeenCalled();
    expect(backend.held).toEqual([]);
  });

  it('rejects those who share a run whose value could not be written, and lets the next caller try again', async () => {
    const error = new RangeError('the cache is full');
    cache.write.mockRejectedValueOnce(error);
    await expect(Promise.all([failureOf(fly(() => 7)), failureOf(fly(() => 7))])).resolves.toEqual([error, error]);
    await expect(fly(() => 8)).resolves.toBe(8);
  });

  it('rejects those who share a wait when waitMs is over, and lets the next caller try again', async () => {
    const free = await backend.occupy('k');
    const failures = [failureOf(fly(() => 7, { waitMs: 100 })), failureOf(fly(() => 7, { waitMs: 100 }))];
    await clock.advance(100);
    const [one, two] = await Promise.all(failures);
    expect(one).toBeInstanceOf(LockTimeoutError);
    expect(two).toBe(one);
    await free();
    await expect(fly(() => 7)).resolves.toBe(7);
  });

  it('writes nothing when the lock was lost during the work', async () => {
    const { work, resolve } = pausedWork();
    const failures = [failureOf(fly(work)), failureOf(fly(work))];
    await eventually(() => work.mock.calls.length === 1);
    backend.revoke('k');
    resolve('late');
    for (const failure of failures) await expect(failure).resolves.toBeInstanceOf(LockLostError);
    expect(cache.write).not.toHaveBeenCalled();
    await expect(fly(() => 'in time')).resolves.toBe('in time');
  });

  it('begins no work when the lock was lost during the second read', async () => {
    cache.read.mockImplementation(async () => {
      if (currentLock()) backend.revoke('k');
      return undefined;
    });
    const work = jest.fn(() => 7);
    await expect(fly(work)).rejects.toBeInstanceOf(LockLostError);
    expect(work).not.toHaveBeenCalled();
  });

  it('lets a caller that has the key pass those who wait for it, where its service allows re-entry', async () => {
    locks = world.service({ defaults: { reentrant: true } });
    const waitingWork = jest.fn(() => 'theirs');
    const [mine, theirs] = await locks.withLock('k', async () => {
      const waiting = runDetached(() => [fly(waitingWork), fly(waitingWork)]);
      await clock.advance(1_000);
      return [await fly(() => 'mine'), waiting];
    });
    expect(mine).toBe('mine');
    await expect(Promise.all(theirs)).resolves.toEqual(['mine', 'mine']);
    expect(waitingWork).not.toHaveBeenCalled();
  });

  // https://github.com/aspnetboilerplate/aspnetboilerplate/issues/2080: the inner call never answered.
  it('answers work that asks for its own key at once', async () => {
    const total = fly(async () => `outer ${await fly(() => 'inner')}`);
    await expect(total).rejects.toBeInstanceOf(LockDeadlockError);
    expect(backend.held).toEqual([]);
  });

  it('ends works that wait for each other by their waitMs', async () => {
    const run = (key: string, waitMs: number, work: () => Promise<string> | string): Promise<string> =>
      singleFlight(locks, key, { read: () => null, work, write: () => undefined }, { waitMs });
    const one = failureOf(run('a', 500, () => run('b', 500, () => 'b')));
    const two = run('b', 900, () => run('a', 900, () => 'a'));
    await clock.advance(500);
    await expect(one).resolves.toBeInstanceOf(LockTimeoutError);
    await expect(two).resolves.toBe('a');
  });

  it('runs the work once for callers that have other locks', async () => {
    const work = jest.fn(() => 7);
    const callers = ['a', 'b', 'c'].map((key) => locks.withLock(key, () => fly(work)));
    await expect(Promise.all([...callers, fly(work)])).resolves.toEqual([7, 7, 7, 7]);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it('lets tasks share a run that were started inside a lock that has ended', async () => {
    let endLock = (): void => undefined;
    const ended = new Promise<void>((resolve) => (endLock = resolve));
    const { work, resolve } = pausedWork();
    const tasks = await locks.withLock('a', () => [1, 2].map(() => ended.then(() => fly(work))));
    endLock();
    await clock.advance(1_000);
    resolve(7);
    await expect(Promise.all(tasks)).resolves.toEqual([7, 7]);
    expect(world.names.filter((name) => name === 'acquired')).toHaveLength(2);
  });

  // https://github.com/tailscale/tailscale/issues/18919: one caller's cancellation reached callers who had not cancelled.
  it.each(['signal', 'mode', 'limit', 'permits', 'reentrant'])(
    'refuses %s, which is of one caller only',
    async (name) => {
      cache.values.set('report', 7);
      const options: SingleFlightOptions = Object.fromEntries([[name, undefined]]);
      await expect(fly(() => 7, options)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: name });
    },
  );

  it('answers all when a run has lost its lock, though its work hangs, and lets later callers run their own', async () => {
    const hung = pausedWork();
    const first = [1, 2, 3].map(() => failureOf(fly(hung.work, { maxHoldMs: 100 })));
    await eventually(() => expect(hung.work).toHaveBeenCalled());
    await clock.advance(200);
    for (const error of await Promise.all(first))
      expect(error).toMatchObject({ code: 'LOCK_LOST', reason: 'max-hold' });
    const second = fly(() => 8);
    await clock.advance(40_000);
    await expect(second).resolves.toBe(8);
    hung.resolve(7);
    expect(cache.values.get('report')).toBe(8);
  });

  it('checks key and options before it reads', async () => {
    const steps = { read: cache.read, work: () => 7, write: cache.write };
    await expect(singleFlight<Value>(locks, '', steps)).rejects.toMatchObject({ option: 'key' });
    await expect(fly(() => 7, { ttlMs: -1 })).rejects.toMatchObject({ option: 'ttlMs' });
    expect(cache.read).not.toHaveBeenCalled();
  });

  it.each(['read', 'work', 'write'])('refuses a call without %s before it does anything', async (name) => {
    const steps = { read: cache.read, work: () => 7, write: cache.write, [name]: undefined };
    await expect(singleFlight<Value>(locks, 'k', steps)).rejects.toMatchObject({ option: name });
    expect(cache.read).not.toHaveBeenCalled();
  });

  it('does not write a null, which no read could tell from nothing', async () => {
    const steps = { read: cache.read, work: (): Value => JSON.parse('null'), write: cache.write };
    await expect(singleFlight(locks, 'k', steps)).resolves.toBeNull();
    expect(cache.write).not.toHaveBeenCalled();
  });
});
