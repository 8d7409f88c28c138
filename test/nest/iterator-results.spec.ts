import { Injectable } from '@nestjs/common';
import { currentLock, DistributedLockModule, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { atLeastMs } from '../support/machine.js';
import { context } from './apps.js';
import { Deferred } from './crossing.js';

const REFUSAL = 'The lock of this iterable is released: call the method again';

let work = new Deferred();

/** Iterator that begins again each time it is asked for its iterator, and has no `return`. */
class Pages implements AsyncIterableIterator<string> {
  readonly locks: (string | undefined)[] = [];
  failures = 0;
  #page = 0;

  [Symbol.asyncIterator](): this {
    this.#page = 0;
    return this;
  }

  async next(): Promise<IteratorResult<string>> {
    this.locks.push(currentLock()?.key);
    if (this.failures > 0) {
      this.failures -= 1;
      throw new Error('no page');
    }
    this.#page += 1;
    return this.#page < 3 ? { done: false, value: `page ${this.#page}` } : { done: true, value: undefined };
  }
}

@Injectable()
class Exports {
  readonly allPages = new Pages();
  readonly shared = {
    async *[Symbol.asyncIterator](): AsyncGenerator<string> {
      yield 'one';
      yield 'two';
    },
  };

  @Locked('export')
  async rows(): Promise<AsyncGenerator<string>> {
    return this.#rows();
  }
  @Locked('export')
  async pages(): Promise<Pages> {
    return this.allPages;
  }
  @Locked('export_:id')
  async feed(@LockKey('id') _id: string): Promise<Exports['shared']> {
    return this.shared;
  }
  @Locked('export')
  async careless(): Promise<AsyncIterable<string>> {
    const iterator = { next: async () => ({ done: false, value: 'one' }), return: async () => undefined };
    return { [Symbol.asyncIterator]: () => iterator as unknown as AsyncIterator<string> };
  }
  @Locked('export')
  async synchronous(): Promise<Generator<string>> {
    return this.#synchronousRows();
  }

  async *#rows(): AsyncGenerator<string> {
    yield 'one';
    await work.promise;
  }
  *#synchronousRows(): Generator<string> {
    yield 'one';
  }
}

async function start() {
  const store = new MemoryLeaseStore();
  work = new Deferred();
  const imports = [
    DistributedLockModule.forRoot({ backend: new LockBackend(store), defaults: { ttlMs: atLeastMs(600) } }),
  ];
  const app = await context({ imports, providers: [Exports] });
  const isHeld = (): boolean => app.get(LockService).inspect().length > 0;
  const lose = async (): Promise<void> => {
    store.revoke('export');
    await eventually(() =>
      app
        .get(LockService)
        .inspect()
        .every(({ state }) => state === 'lost'),
    );
  };
  return { exports: app.get(Exports), isHeld, lose };
}

async function readAll(iterable: AsyncIterable<string>): Promise<string[]> {
  const seen: string[] = [];
  for await (const row of iterable) seen.push(row);
  return seen;
}

describe('an iterator that a locked method returned', () => {
  it('tells of a loss during its last step', async () => {
    const { exports, lose } = await start();
    const rows = await exports.rows();
    await rows.next();
    const lastStep = rows.next();
    await lose();
    work.resolve();
    await expect(lastStep).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('tells a loop that is left early of a loss', async () => {
    const { exports, lose } = await start();
    const leaveEarly = async (): Promise<void> => {
      for await (const _ of await exports.rows()) {
        await lose();
        break;
      }
    };
    await expect(leaveEarly()).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('frees its key when a loop is left early, though it has no "return"', async () => {
    const { exports, isHeld } = await start();
    for await (const _ of await exports.pages()) break;
    expect(isHeld()).toBe(false);
  });

  it('frees its key though its "return" resolves to nothing', async () => {
    const { exports, isHeld } = await start();
    const fail = async (): Promise<void> => {
      for await (const row of await exports.careless()) throw new Error(row);
    };
    await expect(fail()).rejects.toThrow('one');
    expect(isHeld()).toBe(false);
  });

  it('does not begin again without the lock', async () => {
    const { exports } = await start();
    const pages = await exports.pages();
    expect(await readAll(pages)).toEqual(['page 1', 'page 2']);
    await expect(readAll(pages)).rejects.toThrow(REFUSAL);
    expect(await pages.next()).toEqual({ done: true, value: undefined });
    expect(await readAll(await exports.pages())).toEqual(['page 1', 'page 2']);
    expect(pages.locks).toEqual(Array.from({ length: 6 }, () => 'export'));
  });

  it('does not repeat a failed step without the lock', async () => {
    const { exports, isHeld } = await start();
    const pages = await exports.pages();
    pages.failures = 1;
    await expect(pages.next()).rejects.toThrow('no page');
    await expect(pages.next()).rejects.toThrow('no page');
    expect([pages.locks, isHeld()]).toEqual([['export'], false]);
  });

  it('keeps its key until each that has begun has ended, and is refused when it begins later', async () => {
    const { exports, isHeld } = await start();
    const iterable = await exports.feed('1');
    const createIterator = (): AsyncGenerator<string> => iterable[Symbol.asyncIterator]();
    const [first, second, later] = [createIterator(), createIterator(), createIterator()];
    await second.next();
    expect([await readAll(first), isHeld()]).toEqual([['one', 'two'], true]);
    expect([await readAll(second), isHeld()]).toEqual([['two'], false]);
    await expect(readAll(later)).rejects.toThrow(REFUSAL);
    await expect(readAll(createIterator())).rejects.toThrow(REFUSAL);
    expect(await first.next()).toEqual({ done: true, value: undefined });
    expect([await readAll(await exports.feed('1')), isHeld()]).toEqual([['one', 'two'], false]);
  });

  it('is not ended by an earlier call that returned the same iterable', async () => {
    const { exports, isHeld } = await start();
    const first = (await exports.feed('1'))[Symbol.asyncIterator]();
    await first.next();
    const second = await exports.feed('2');
    await first.return(undefined);
    expect([await readAll(second), isHeld()]).toEqual([['one', 'two'], false]);
  });

  it('is refused where it is synchronous', async () => {
    const { exports, isHeld } = await start();
    await expect(exports.synchronous()).rejects.toThrow(
      'Exports.synchronous returned a synchronous generator, whose work would outlive',
    );
    expect(isHeld()).toBe(false);
  });
});
