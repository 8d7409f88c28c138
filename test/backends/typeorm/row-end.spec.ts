import { type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { rowManager, typeorm } from 'nestjs-distributed-lock/typeorm';
import { type SqlBackendName, sqlHarness } from './harness.js';
import { describeWanted } from '../../support/wanted-backends.js';

/** Statements of a holder that come while its transaction ends must not be committed outside of it. */
describeWanted(['postgres-row', 'mariadb-row'], "the end of a row lock's transaction: %s", endOfTransaction);

function endOfTransaction(name: SqlBackendName): void {
  const harness = sqlHarness(name);
  let locks: LockService;

  beforeAll(async () => {
    await harness.start();
    await harness.ask('create table stock (id integer primary key, n integer not null)');
  });
  afterAll(() => harness.stop());
  afterEach(() => locks.close());
  beforeEach(async () => {
    await harness.ask('delete from stock');
    await harness.ask('insert into stock values (1, 10), (2, 10), (3, 10), (4, 10), (5, 10)');
    locks = new LockService(
      typeorm({ dataSource: { options: harness.dataSource() }, strategy: 'row', synchronize: true, poolSize: 4 })(),
    );
  });

  const stockOf = async (id: number): Promise<number> =>
    Number((await harness.ask(`select n from stock where id = ${id}`))[0]?.['n']);
  const sell = (lock: LockHandle, ...ids: number[]): Promise<unknown> =>
    rowManager(lock).query(`update stock set n = n - 1 where id in (${ids.join(', ')})`);

  it.each(['release', 'complete'] as const)('refuses what the holder starts after %s has begun', async (end) => {
    const lock = await locks.acquire('sale');
    const lateSale = rowManager(lock)
      .query('select 1')
      .then(() => sell(lock, 1));
    const outcome = expect(lateSale).rejects.toThrow(/transaction is over/u);
    await lock[end]();
    await outcome;
    expect(await stockOf(1)).toBe(10);
    await lock.release();
  });

  it('keeps what the holder has started before complete(), also if its answer comes later', async () => {
    const lock = await locks.acquire('sale');
    const sales = [sell(lock, 1), sell(lock, 2)];
    await lock.complete();
    await Promise.all(sales);
    expect([await stockOf(1), await stockOf(2)]).toEqual([9, 9]);
    await lock.release();
  });

  it('does not take the end of a transaction within it for a commit', async () => {
    const lock = await locks.acquire('sale');
    await rowManager(lock).queryRunner?.startTransaction();
    await sell(lock, 1);
    await expect(lock.complete()).rejects.toThrow(/is still open/u);
    await lock.release();
    expect(await stockOf(1)).toBe(10);
    await locks.withLock('sale', (next) => sell(next, 1));
    expect(await stockOf(1)).toBe(9);
  });

  const onMariadb = harness.type === 'mariadb' ? it : it.skip;

  // On PostgreSQL, statements after the deadlock fail within the transaction, which is still open.
  onMariadb('sends no statement that waited behind one by which the transaction ended', async () => {
    const [victim, winner] = [await locks.acquire('victim'), await locks.acquire('winner')];
    await sell(victim, 1);
    // InnoDB ends the transaction that has changed fewer rows.
    await sell(winner, 2, 3, 4);
    const sales = [sell(victim, 2), sell(victim, 5)];
    const outcomes = Promise.allSettled(sales);
    await sell(winner, 1);
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await winner.complete();
    await Promise.all([victim.release(), winner.release()]);
    expect([await stockOf(1), await stockOf(5)]).toEqual([9, 10]);
  });
}
