import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { currentLock, DistributedLockModule, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { interval, lastValueFrom } from 'rxjs';
import { atLeastMs, eventually } from '../support/index.js';
import { context } from './apps.js';
import { Deferred } from './crossing.js';

const TTL_MS = atLeastMs(600);
const END = { done: true, value: undefined } as const;

@Injectable()
class Exports {
  @Locked('export_:id')
  async give<Result>(@LockKey('id') _id: string, create: () => Result): Promise<Result> {
    return create();
  }
}

async function start() {
  const store = new MemoryLeaseStore();
  const imports = [DistributedLockModule.forRoot({ backend: new LockBackend(store), defaults: { ttlMs: TTL_MS } })];
  const app = await context({ imports, providers: [Exports] });
  const [exports, locks] = [app.get(Exports), app.get(LockService)];
  const heldKeys = (): string[] => locks.inspect().map(({ key }) => key);
  const isFree = async (id: string): Promise<boolean> => {
    const lock = await locks.tryAcquire(`export_${id}`, { reentrant: false });
    await lock?.release();
    return lock !== null;
  };
  return { store, locks, heldKeys, isFree, give: exports.give.bind(exports) };
}

async function readAll<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const value of iterable) seen.push(value);
  return seen;
}

async function* count(): AsyncGenerator<number> {
  for (let n = 1; ; n += 1) yield n;
}

const endless = (): AsyncIterable<number> => ({ [Symbol.asyncIterator]: count });

function blockUntilTtlEnds(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TTL_MS);
}

describe('the end of an iterator that a locked method returned', () => {
  it('frees the key of its call, while a later call that returned the same iterable goes on', async () => {
    const { give, heldKeys } = await start();
    const shared = endless();
    const beginCall = async (id: string): Promise<AsyncIterator<number>> => {
      const iterator = (await give(id, () => shared))[Symbol.asyncIterator]();
      await iterator.next();
      return iterator;
    };
    let previous = await beginCall('0');
    for (const id of ['1', '2', '0', '1']) {
      const next = await beginCall(id);
      await previous.return?.();
      expect(heldKeys()).toEqual([`export_${id}`]);
      previous = next;
    }
    await previous.return?.();
  });

  it('is not that of an earlier call that was cancelled in the midst of a step', async () => {
    const { give, store, heldKeys } = await start();
    const stuckStep = new Deferred();
    let isStuck = true;
    const next = async (): Promise<IteratorResult<number>> => {
      if (isStuck) await stuckStep.promise;
      return END;
    };
    const shared: AsyncIterable<number> = { [Symbol.asyncIterator]: () => ({ next, return: async () => END }) };
    const step = (await give('1', () => shared))[Symbol.asyncIterator]().next();
    store.revoke('export_1');
    await eventually(() => heldKeys().length === 0);
    isStuck = false;
    expect(await readAll(await give('2', () => shared))).toEqual([]);
    stuckStep.resolve();
    await expect(step).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('comes after the steps that still run when the last value was read', async () => {
    const { give, heldKeys } = await start();
    const work = new Deferred();
    let steps = 0;
    const next = async (): Promise<IteratorResult<string[]>> => {
      steps += 1;
      if (steps > 1) return END;
      await work.promise;
      return { done: false, value: heldKeys() };
    };
    const iterable = await give('1', (): AsyncIterable<string[]> => ({ [Symbol.asyncIterator]: () => ({ next }) }));
    const iterator = iterable[Symbol.asyncIterator]();
    const firstStep = iterator.next();
    expect([await iterator.next(), heldKeys()]).toEqual([END, ['export_1']]);
    work.resolve();
    expect(await firstStep).toEqual({ done: false, value: ['export_1'] });
    await eventually(() => heldKeys().length === 0);
  });

  it('comes after the step that runs when its consumer leaves, if the iterator has no "return"', async () => {
    const { give, heldKeys } = await start();
    const work = new Deferred();
    const next = async (): Promise<IteratorResult<string[]>> => {
      await work.promise;
      return { done: false, value: heldKeys() };
    };
    const iterable = await give('1', (): AsyncIterable<string[]> => ({ [Symbol.asyncIterator]: () => ({ next }) }));
    const iterator = iterable[Symbol.asyncIterator]();
    const step = iterator.next();
    await iterator.return?.();
    work.resolve();
    expect(await step).toEqual({ done: false, value: ['export_1'] });
    await eventually(() => heldKeys().length === 0);
  });

  it('frees the key before its consumer learns of a failed step', async () => {
    const { give, isFree } = await start();
    const next = (): Promise<never> => Promise.reject(new Error('no page'));
    const pages = await give('1', (): AsyncIterable<number> => ({ [Symbol.asyncIterator]: () => ({ next }) }));
    await expect(readAll(pages)).rejects.toThrow('no page');
    expect(await isFree('1')).toBe(true);
  });

  it('frees the key if the iterable cannot be iterated', async () => {
    const { give, heldKeys } = await start();
    const getIterator = (): never => {
      throw new Error('already consumed');
    };
    const iterable = await give('1', (): AsyncIterable<number> => ({ [Symbol.asyncIterator]: getIterator }));
    await expect(readAll(iterable)).rejects.toThrow('already consumed');
    await eventually(() => heldKeys().length === 0);
  });

  it('is that of "await using"', async () => {
    const { give, heldKeys } = await start();
    let disposals = 0;
    const disposable = {
      next: async () => ({ done: false, value: 1 }),
      [Symbol.asyncDispose]: async () => void (disposals += 1),
    };
    const iterable = await give('1', () => ({ [Symbol.asyncIterator]: () => disposable }));
    const iterator = iterable[Symbol.asyncIterator]();
    await iterator.next();
    await iterator[Symbol.asyncDispose]();
    expect([disposals, heldKeys()]).toEqual([1, []]);
  });

  it('lets a generator go on as without a lock: it is done, whatever its last step was', async () => {
    const { give } = await start();
    const failed = await give('1', async function* () {
      yield await Promise.reject(new Error('no page'));
    });
    await expect(failed.next()).rejects.toThrow('no page');
    expect(await failed.next()).toEqual(END);
    const empty = await give('1', async function* () {});
    expect([await empty.next(), await readAll(empty)]).toEqual([END, []]);
  });
});

describe('an iterable that a locked method returned', () => {
  it('may return the same iterator ten thousand times', async () => {
    const { give } = await start();
    const iterator = count();
    const iterable = await give('1', (): AsyncIterable<number> => ({ [Symbol.asyncIterator]: () => iterator }));
    let last: unknown;
    for (let n = 1; n <= 10_000; n += 1) {
      last = (await iterable[Symbol.asyncIterator]().next()).value;
      // Promises alone would keep the lock from being renewed.
      if (n % 100 === 0) await setImmediate();
    }
    expect(last).toBe(10_000);
    await iterator.return(undefined);
  });
});

describe('a result of a locked method, after the event loop was blocked until the lock was lost', () => {
  it('runs no step of an iterator', async () => {
    const { give } = await start();
    const states: (string | undefined)[] = [];
    const rows = await give('1', async function* () {
      for (;;) yield states.push(currentLock()?.state);
    });
    await rows.next();
    blockUntilTtlEnds();
    await expect(rows.next()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await expect(rows.next()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(states).toEqual(['held']);
  });

  it('pulls no chunk of a web stream', async () => {
    const { give } = await start();
    const states: (string | undefined)[] = [];
    const pull = (controller: ReadableStreamDefaultController<number>): void =>
      controller.enqueue(states.push(currentLock()?.state));
    const stream = await give('1', () => new ReadableStream<number>({ pull }, { highWaterMark: 0 }));
    const reader = stream.getReader();
    expect((await reader.read()).value).toBe(1);
    blockUntilTtlEnds();
    await expect(reader.read()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(states).toEqual(['held']);
  });

  it('passes on no value of an Observable', async () => {
    const { give, heldKeys } = await start();
    const values: number[] = [];
    const observable = await give('1', () => interval(1));
    const reading = lastValueFrom(observable).catch((error: unknown) => error);
    observable.subscribe({ next: (value) => values.push(value), error: () => undefined });
    await eventually(() => values.length > 0);
    const countBefore = values.length;
    blockUntilTtlEnds();
    await expect(reading).resolves.toMatchObject({ code: 'LOCK_LOST' });
    expect([values.length, heldKeys()]).toEqual([countBefore, []]);
  });
});
