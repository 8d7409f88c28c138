import { jest } from '@jest/globals';
import { LockDeadlockError, type LockEvents, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';

type Suspect = LockEvents['orderSuspect'];

describe('the order of locks', () => {
  const suspects: Suspect[] = [];
  let locks = service();

  function service(options: LockServiceOptions = {}): LockService {
    const observers = [{ orderSuspect: (event: Suspect) => void suspects.push(event) }];
    return new LockService(memory(), { orderWarnings: true, observers, ...options });
  }

  /** Each key under the ones before it. */
  async function take(...[key, ...rest]: string[]): Promise<void> {
    if (key !== undefined) await locks.withLock(key, () => take(...rest), { reentrant: true });
  }

  const orders = (): string[][] =>
    suspects.map(({ orders: circle }) => circle.map(({ held, wanted }) => `${held} > ${wanted}`));

  beforeEach(async () => {
    suspects.length = 0;
    locks = service();
  });
  afterEach(() => locks.close());

  it('is that of classes with their numbers replaced for keys at which the function throws', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const classOf = (key: string): string => {
      throw new Error(`no class for a key of ${key.length} characters`);
    };
    locks = service({ orderWarnings: classOf });
    await take('user:1', 'order:7');
    await take('order:8', 'user:2');
    expect(suspects[0]?.orders[0]).toMatchObject({ heldClass: 'order:*', wantedClass: 'user:*' });
    expect(warned.mock.calls).toEqual([['orderWarnings threw: no class for a key of 6 characters']]);
    warned.mockRestore();
  });

  describe('a circle of classes', () => {
    it('is told once, by whom it closes, with the first order of each pair and where that was', async () => {
      await take('user:1', 'order:7');
      await take('user:2', 'order:8');
      expect(suspects).toEqual([]);
      async function second(): Promise<void> {
        await locks.withLock('order:9', () => locks.withLock('user:3', () => undefined));
      }
      await second();
      await second();
      expect(suspects).toHaveLength(1);
      expect(suspects[0]).toMatchObject({
        key: 'user:3',
        orders: [
          { held: 'order:9', wanted: 'user:3', heldClass: 'order:*', wantedClass: 'user:*' },
          { held: 'user:1', wanted: 'order:7', heldClass: 'user:*', wantedClass: 'order:*' },
        ],
      });
      const [now, before] = suspects[0]?.orders ?? [];
      expect(now?.stack).toMatch(/^ +at .*ordering\.spec/u);
      expect(now?.stack).not.toMatch(/[/]lib[/]/u);
      expect(before?.stack).toMatch(/^ +at .*take .*ordering\.spec/mu);
    });

    it('may go over several pairs, and over keys between', async () => {
      await take('a', 'between', 'b');
      await take('b', 'c');
      await take('c', 'a');
      expect(orders()).toEqual([['c > a', 'a > b', 'b > c']]);
    });

    it('is of one class, when its keys are taken upwards and downwards', async () => {
      await take('seat:1', 'seat:2');
      await take('seat:4', 'seat:7');
      // In the order of numbers or of texts, which is that of withLocks.
      await take('seat:9', 'seat:10');
      await locks.withLocks(['seat:9', 'seat:10'], () => undefined);
      expect(suspects).toEqual([]);
      await take('seat:3', 'seat:2');
      await take('seat:8', 'seat:5');
      expect(orders()).toEqual([['seat:3 > seat:2', 'seat:1 > seat:2']]);
    });

    it('is nothing without waiting, by re-entry, or after the release', async () => {
      await take('a', 'b', 'a', 'b');
      await locks.withLock('b', () => locks.tryAcquire('a').then((lock) => lock?.release()));
      let go = (): void => undefined;
      const released = new Promise<void>((resolve) => (go = resolve));
      const later = locks.withLock('b', () => ({ late: released.then(() => take('a')) }));
      const { late } = await later;
      go();
      await late;
      expect(suspects).toEqual([]);
    });

    it('is looked for in 1,000 classes, and warns when there are more', async () => {
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      try {
        const names = Array.from({ length: 999 }, (_, i) => `n${String.fromCodePoint(0x4e00 + i)}`);
        await locks.withLock('first', async () => {
          for (const name of names) await take(name);
        });
        expect(warn).not.toHaveBeenCalled();
        await take('one too many', 'another');
        await take('another', 'one too many');
        expect(suspects).toEqual([]);
        expect(warn).toHaveBeenCalledTimes(1);
        await take(names[998] ?? '', 'first');
        expect(suspects).toHaveLength(1);
      } finally {
        warn.mockRestore();
      }
    });

    it('has the names that a function gives, without the namespace', async () => {
      const named = service({ namespace: 'shop', orderWarnings: (key) => key.slice(0, 1) });
      await named.withLock('ann', () => named.withLock('box', () => undefined));
      await named.withLock('bag', () => named.withLock('abe', () => undefined));
      await named.close();
      expect(suspects[0]?.orders).toMatchObject([
        { heldClass: 'b', wantedClass: 'a' },
        { heldClass: 'a', wantedClass: 'b' },
      ]);
    });
  });

  describe('a circle of call trees that wait', () => {
    /** Takes `first`, and then `second`, when all the others have their first one. */
    function philosophers(pairs: readonly [string, string][]): Promise<PromiseSettledResult<void>>[] {
      let seated = 0;
      let begin = (): void => undefined;
      const all = new Promise<void>((resolve) => (begin = resolve));
      return pairs.map(async ([first, second]) => {
        const [result] = await Promise.allSettled([
          locks.withLock(first, async () => {
            seated += 1;
            if (seated === pairs.length) begin();
            await all;
            await locks.withLock(second, () => undefined, { waitMs: Infinity });
          }),
        ]);
        return result;
      });
    }

    it('is an error for who closes it, and for nobody else', async () => {
      const results = await Promise.all(
        philosophers([
          ['a', 'b'],
          ['b', 'c'],
          ['c', 'a'],
        ]),
      );
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
      const error: unknown = results[2]?.status === 'rejected' ? results[2].reason : undefined;
      expect(error).toBeInstanceOf(LockDeadlockError);
      expect(error).toMatchObject({
        held: ['c'],
        wanted: 'a',
        others: [
          { held: ['a'], wanted: 'b' },
          { held: ['b'], wanted: 'c' },
        ],
        message: expect.stringContaining('the holder of "a" waits for "b", the holder of "b" waits for "c", which'),
      });
      await locks.withLocks(['a', 'b', 'c'], () => undefined, { waitMs: 0 });
    });

    it('is over when one of them gives up', async () => {
      const [a, b] = [await locks.acquire('a'), await locks.acquire('b')];
      const impatient = new AbortController();
      const gaveUp = b.run(() => locks.acquire('a', { signal: impatient.signal }));
      impatient.abort(new Error('enough'));
      await expect(gaveUp).rejects.toThrow('enough');
      const waiting = a.run(() => locks.acquire('b'));
      await b.release();
      await (await waiting).release();
      await a.release();
    });
  });

  it('is nobody’s concern unless asked for', async () => {
    await locks.close();
    locks = service({ orderWarnings: false });
    await take('a', 'b');
    await take('b', 'a');
    expect(suspects).toEqual([]);
  });
});
