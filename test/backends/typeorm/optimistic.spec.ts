import { jest } from '@jest/globals';
import { LockConfigurationError, OptimisticConflictError } from 'nestjs-distributed-lock/core';
import { DataSource, type EntityManager } from 'typeorm';
import { isConflict } from '../../../lib/backends/typeorm/optimistic/conflict.js';
import { Optimistic } from '../../../lib/backends/typeorm/optimistic/optimistic-method.js';
import { updateVersioned } from '../../../lib/backends/typeorm/optimistic/optimistic-update.js';
import { optimistic } from '../../../lib/backends/typeorm/optimistic/optimistic.js';
import { eventually, Gate } from '../../support/index.js';
import { databases, type TestDatabase } from './optimistic-databases.js';
import { Stock, Unversioned } from './optimistic-entities.js';

const CHANGED = /^(40001|ER_CHECKREAD)$/u;

databases().forEach(({ name, start }) =>
  describe(`optimistic on ${name}`, () => {
    let database: TestDatabase;
    let dataSource: DataSource;

    beforeAll(async () => {
      database = await start();
      dataSource = new DataSource({ ...database.options, entities: [Stock, Unversioned], synchronize: true });
      await dataSource.initialize();
    });

    afterAll(async () => {
      await dataSource.destroy();
      await database.stop();
    });

    beforeEach(async () => {
      await dataSource.manager.clear(Stock);
      await dataSource.manager.insert(Stock, { id: 42, remaining: 100 });
    });

    const left = async (): Promise<number> => (await dataSource.manager.findOneByOrFail(Stock, { id: 42 })).remaining;
    const take = async (manager: EntityManager): Promise<boolean> => {
      const stock = await manager.findOneByOrFail(Stock, { id: 42 });
      if (stock.remaining === 0) return false;
      await updateVersioned(manager, Stock, stock, { remaining: stock.remaining - 1 });
      return true;
    };

    it('sells 100 of 100 to 200 concurrent buyers, and loses no update', async () => {
      let runs = 0;
      const buy = (): Promise<boolean> =>
        optimistic(
          dataSource,
          (manager) => {
            runs += 1;
            return take(manager);
          },
          { retries: 200 },
        );
      const sales = await Promise.all(Array.from({ length: 200 }, buy));
      expect(sales.filter(Boolean)).toHaveLength(100);
      expect(await left()).toBe(0);
      expect((await dataSource.manager.findOneByOrFail(Stock, { id: 42 })).version).toBe(101);
      process.stderr.write(`optimistic on ${name}: 200 buyers, 100 sales, ${runs - 200} retries\n`);
    });

    if (name === 'sqlite') {
      it('waits for another process that writes', async () => {
        const transaction = jest.spyOn(dataSource.manager, 'transaction');
        const other = await database.writer();
        const sale = optimistic(dataSource, take, { retries: 50 });
        await eventually(() => transaction.mock.calls.length > 1);
        await other.commit();
        await expect(sale).resolves.toBe(true);
        expect(await left()).toBe(49);
      });
    } else {
      it('runs the whole work again when another connection was faster', async () => {
        const seen: number[] = [];
        await optimistic(dataSource, async (manager) => {
          const stock = await manager.findOneByOrFail(Stock, { id: 42 });
          seen.push(stock.remaining);
          if (seen.length === 1) await (await database.writer()).commit();
          await updateVersioned(manager, Stock, stock, { remaining: stock.remaining - 1 });
        });
        expect(seen).toEqual([100, 50]);
        expect(await left()).toBe(49);
      });
    }

    if (name !== 'sqlite') {
      it('is one conflict, whoever tells it: the server that compares snapshots, or the version', async () => {
        const runner = dataSource.createQueryRunner();
        if (name === 'mariadb') await runner.query('set session innodb_snapshot_isolation = 1');
        await runner.startTransaction('REPEATABLE READ');
        const stock = await runner.manager.findOneByOrFail(Stock, { id: 42 });
        await (await database.writer()).commit();
        const update = updateVersioned(runner.manager, Stock, stock, { remaining: 0 });
        await expect(update).rejects.toBeInstanceOf(OptimisticConflictError);
        await expect(update).rejects.toMatchObject({ attempts: 1, cause: { code: expect.stringMatching(CHANGED) } });
        await runner.rollbackTransaction();
        await runner.release();
        expect(await left()).toBe(50);
      });
    }

    it('gives up after its retries, with the number of attempts, and has written nothing', async () => {
      let runs = 0;
      const work = optimistic(
        dataSource,
        async (manager) => {
          runs += 1;
          await manager.insert(Stock, { id: 43, remaining: 1 });
          const stock = await manager.findOneByOrFail(Stock, { id: 42 });
          await updateVersioned(manager, Stock, Object.assign(stock, { version: stock.version - 1 }), { remaining: 0 });
        },
        { retries: 2, baseDelayMs: 0 },
      );
      await expect(work).rejects.toThrow(OptimisticConflictError);
      await expect(work).rejects.toMatchObject({ code: 'OPTIMISTIC_CONFLICT', attempts: 3 });
      await expect(work).rejects.toThrow(
        'gave up after 3 attempts, the last one: Stock {"id":42} is no longer at version 0',
      );
      expect(runs).toBe(3);
      expect(await left()).toBe(100);
      expect(await dataSource.manager.countBy(Stock, { id: 43 })).toBe(0);
    });

    it('does not run again after any other error, and takes a row that is gone for a conflict', async () => {
      let runs = 0;
      const failing = optimistic(dataSource, () => {
        runs += 1;
        return Promise.reject(new Error('out of stock'));
      });
      await expect(failing).rejects.toThrow('out of stock');
      expect(runs).toBe(1);
      const gone = Object.assign(new Stock(), { id: 99, remaining: 1, version: 1 });
      await expect(updateVersioned(dataSource.manager, Stock, gone, { remaining: 0 })).rejects.toMatchObject({
        attempts: 1,
      });
    });

    it('never writes back the version that the changes happen to have', async () => {
      await optimistic(dataSource, async (manager) => {
        const stock = await manager.findOneByOrFail(Stock, { id: 42 });
        await updateVersioned(manager, Stock, stock, { id: 42, version: stock.version, remaining: 7 });
      });
      expect(await dataSource.manager.findOneBy(Stock, { id: 42 })).toMatchObject({ remaining: 7, version: 2 });
    });

    it('joins a transaction of the caller, which repeats the whole', async () => {
      let runs = 0;
      await optimistic(dataSource, async (outer) => {
        runs += 1;
        await optimistic(outer, async (manager) => {
          const stock = await manager.findOneByOrFail(Stock, { id: 42 });
          const { version } = stock;
          await updateVersioned(manager, Stock, Object.assign(stock, { version: runs === 1 ? 0 : version }), {
            remaining: 3,
          });
        });
      });
      expect(runs).toBe(2);
      expect(await left()).toBe(3);
    });

    it('called with the data source inside of its own work, does not wait for itself', async () => {
      await optimistic(dataSource, async () => {
        await optimistic(dataSource, (manager) => take(manager));
      });
      expect(await left()).toBe(99);
    });

    it('takes deadlocks and serialization failures for conflicts', async () => {
      await dataSource.manager.insert(Stock, { id: 43, remaining: 100 });
      const [both, concurrent] = [new Gate(), name !== 'sqlite'];
      let runs = 0;
      let begun = 0;
      const swap = (from: number, to: number): Promise<void> =>
        optimistic(dataSource, async (manager) => {
          runs += 1;
          await manager.decrement(Stock, { id: from }, 'remaining', 1);
          begun += 1;
          if (begun === 2) both.open();
          if (concurrent) await both.opened;
          await manager.decrement(Stock, { id: to }, 'remaining', 1);
        });
      await Promise.all([swap(42, 43), swap(43, 42)]);
      expect(await dataSource.manager.sum(Stock, 'remaining')).toBe(196);
      // A busy server may take more than one of them for the victim.
      expect(runs).toBeGreaterThanOrEqual(concurrent ? 3 : 2);
    });

    it('repeats a decorated method as a whole', async () => {
      const runs: number[] = [];
      class Shop {
        constructor(private readonly source: DataSource) {}

        @Optimistic({ retries: 5 })
        async buy(amount: number): Promise<string> {
          runs.push(amount);
          await this.source.transaction(async (manager) => {
            const stock = await manager.findOneByOrFail(Stock, { id: 42 });
            const version = runs.length === 1 ? 0 : stock.version;
            await updateVersioned(manager, Stock, Object.assign(stock, { version }), {
              remaining: stock.remaining - amount,
            });
          });
          return 'sold';
        }
      }
      await expect(new Shop(dataSource).buy(2)).resolves.toBe('sold');
      expect(runs).toEqual([2, 2]);
      expect(await left()).toBe(98);
      expect([Shop.prototype.buy.name, Shop.prototype.buy.length]).toEqual(['buy', 1]);
    });

    it('refuses entities without a version, and rows read without theirs', async () => {
      const { manager } = dataSource;
      await expect(updateVersioned(manager, Unversioned, { id: 1, remaining: 1 }, { remaining: 0 })).rejects.toThrow(
        /Unversioned needs a column with @VersionColumn/u,
      );
      const partial = await manager.findOneOrFail(Stock, { select: { id: true, remaining: true }, where: { id: 42 } });
      await expect(updateVersioned(manager, Stock, partial, { remaining: 0 })).rejects.toThrow(LockConfigurationError);
      expect(await left()).toBe(100);
    });
  }),
);

it('refuses options that can never work, where they are given', async () => {
  const broken = [
    { retries: -1 },
    { retries: 1.5 },
    { retries: Number.NaN },
    { baseDelayMs: -1 },
    { baseDelayMs: Infinity },
  ];
  for (const options of broken) {
    expect(() => Optimistic(options)).toThrow(LockConfigurationError);
  }
  const never = new DataSource({ type: 'postgres' });
  await expect(optimistic(never, () => Promise.resolve(), { retries: -1 })).rejects.toThrow(/retries must be .* -1/u);
});

it('does not repeat what was repeated up to its limit', () => {
  expect(isConflict(new OptimisticConflictError('first', 1))).toBe(true);
  expect(isConflict(new OptimisticConflictError('exhausted', 11))).toBe(false);
});
