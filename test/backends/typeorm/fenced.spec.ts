import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LockService, StaleFenceError } from 'nestjs-distributed-lock/core';
import { CreateDistributedLock1760000000000, fenced, typeorm } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';

const libsql: unknown = createRequire(import.meta.url)('libsql');

describe('SQLite: migration, lease and fence', () => {
  let directory: string;
  let dataSource: DataSource;
  let locks: LockService;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ndl-sqlite-'));
    dataSource = new DataSource({
      type: 'better-sqlite3',
      driver: libsql,
      database: join(directory, 'test.sqlite'),
      migrations: [CreateDistributedLock1760000000000],
      migrationsRun: true,
    });
    await dataSource.initialize();
    await dataSource.query('create table stock (id integer primary key, left_over integer not null)');
    await dataSource.query('insert into stock values (42, 10)');
    locks = new LockService(typeorm({ dataSource }));
  });

  afterEach(async () => {
    await locks.close();
    await dataSource.destroy();
    rmSync(directory, { recursive: true });
  });

  const stock = async (): Promise<number> =>
    Number((await dataSource.query('select left_over from stock'))[0].left_over);
  const buy = (lock: { fencingToken: bigint }): Promise<void> =>
    fenced(dataSource.manager, 'sale_42', lock, async (manager) => {
      await manager.query('update stock set left_over = left_over - 1');
    });

  it('writes under the newest token, and again under the same', async () => {
    await using lock = await locks.acquire('sale_42');
    await buy(lock);
    await buy(lock);
    expect(await stock()).toBe(8);
  });

  it('refuses a former holder, and runs nothing of its work', async () => {
    const former = { fencingToken: 0n };
    await using lock = await locks.acquire('sale_42');
    former.fencingToken = lock.fencingToken - 1n;
    await buy(lock);
    await expect(buy(former)).rejects.toThrow(StaleFenceError);
    await expect(buy(former)).rejects.toMatchObject({ token: former.fencingToken, newest: lock.fencingToken });
    expect(await stock()).toBe(9);
  });

  it.each([
    ['', 1n, 'must not be empty'],
    [undefined, 1n, 'must be a string'],
    ['\ud800', 1n, 'lone surrogate'],
    ['x'.repeat(5_000), 1n, 'may have 4096 bytes'],
    ['sale', 1, 'needs a lock with its fencingToken, a bigint; it was 1'],
    ['sale', undefined, 'it was undefined'],
    ['sale', -1n, 'it was -1'],
    ['sale', 2n ** 63n, 'it was 9223372036854775808'],
  ])('refuses the resource %j with the token %p, and runs nothing', async (resource, fencingToken, why) => {
    const untyped = (args: unknown[]): Promise<unknown> => Reflect.apply(fenced, undefined, args);
    let ran = false;
    const work = async (): Promise<void> => void (ran = true);
    await expect(untyped([dataSource.manager, resource, { fencingToken }, work])).rejects.toThrow(why);
    await expect(untyped([dataSource.manager, 'sale', undefined, work])).rejects.toThrow('it was undefined');
    expect(ran).toBe(false);
  });

  it('raises no fence when the work is rolled back', async () => {
    await using lock = await locks.acquire('sale_42');
    const failing = fenced(dataSource.manager, 'sale_42', { fencingToken: lock.fencingToken + 5n }, () =>
      Promise.reject(new Error('out of stock')),
    );
    await expect(failing).rejects.toThrow('out of stock');
    await buy(lock);
    expect(await stock()).toBe(9);
  });

  it('joins the transaction of the caller', async () => {
    await using lock = await locks.acquire('sale_42');
    const work = dataSource.transaction(async (manager) => {
      await fenced(manager, 'sale_42', lock, (inner) => inner.query('update stock set left_over = 0'));
      throw new Error('changed my mind');
    });
    await expect(work).rejects.toThrow('changed my mind');
    expect(await stock()).toBe(10);
  });

  it('keeps a lock when the transaction around it is rolled back', async () => {
    const work = dataSource.transaction(async () => {
      await locks.acquire('sale_42', { ttlMs: 5_000 });
      throw new Error('rolled back');
    });
    await expect(work).rejects.toThrow('rolled back');
    const other = new LockService(typeorm({ dataSource }));
    await expect(other.tryAcquire('sale_42')).resolves.toBeNull();
    await other.close();
  });

  it('says what to do when the table is missing, without waiting for it', async () => {
    const without = new LockService(typeorm({ dataSource, tableName: 'no_such_table' }));
    await expect(without.acquire('k')).rejects.toThrow(/no_such_table.*CreateDistributedLock1760000000000/u);
    await without.close();
  });

  it('refuses a database in memory, other databases and table names that are more than a name', () => {
    const inMemory = { options: { type: 'better-sqlite3', database: ':memory:' } } as const;
    expect(() => typeorm({ dataSource: inMemory })).toThrow(/use a file, or memory\(\)/u);
    expect(() => typeorm({ dataSource: { options: { type: 'oracle' } } })).toThrow(/no dialect for .*"oracle"/u);
    expect(() => typeorm({ dataSource, tableName: 'x; drop table stock' })).toThrow(/plain identifier/u);
  });

  it('keeps growing tokens over release, a new connection and a deleted row', async () => {
    const tokens: bigint[] = [];
    for (let round = 0; round < 3; round += 1) {
      const service = new LockService(typeorm({ dataSource }));
      const lock = await service.acquire('k');
      tokens.push(lock.fencingToken);
      await lock.release();
      await service.close();
      if (round === 1) await dataSource.query('delete from distributed_lock');
    }
    expect(tokens.toSorted((a, b) => Number(a - b))).toEqual(tokens);
    expect(new Set(tokens).size).toBe(3);
  });
});
