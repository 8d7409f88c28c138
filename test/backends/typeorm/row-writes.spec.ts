import { type LockHandle, LockService, type LockSet } from 'nestjs-distributed-lock/core';
import { rowManager, typeorm } from 'nestjs-distributed-lock/typeorm';
import { type SqlBackendName, sqlHarness } from './harness.js';
import { describeWanted } from '../../support/wanted-backends.js';

/** The holder's writes through its transaction: kept with success, gone with everything else. */
describeWanted(['postgres-row', 'mariadb-row'], 'writes of the holder of a row lock: %s', writes);

function writes(name: SqlBackendName): void {
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
    await harness.ask('insert into stock values (1, 10)');
    locks = new LockService(
      typeorm({ dataSource: { options: harness.dataSource() }, strategy: 'row', synchronize: true, poolSize: 4 })(),
    );
  });

  const stock = async (): Promise<number> => Number((await harness.ask('select n from stock'))[0]?.['n']);
  const sell = (lock: LockHandle) => rowManager(lock).query('update stock set n = n - 1');

  it('are committed when the work succeeds, all of them at once', async () => {
    const again = { reentrant: true };
    const sellTwice = async (lock: LockHandle): Promise<void> => {
      await sell(lock);
      await locks.withLock('sale', sell, again);
      expect(await stock()).toBe(10);
    };
    await locks.withLock('sale', sellTwice, again);
    expect(await stock()).toBe(8);
  });

  it('are committed with each of several keys, and tryWithLock commits them, too', async () => {
    const first = ({ locks: [lock] }: LockSet): Promise<unknown> => (lock ? sell(lock) : Promise.reject(new Error()));
    await locks.withLocks(['sale', 'stock'], first);
    expect(await stock()).toBe(9);
    await locks.tryWithLock('sale', sell);
    expect(await stock()).toBe(8);
  });

  it('end the lock once they are committed: what the holder had shown is stale', async () => {
    const shown = await locks.withLock('sale', async (lock) => {
      await sell(lock);
      await expect(locks.checkSequencer(lock.sequencer())).resolves.toBe('valid');
      return lock.sequencer();
    });
    await expect(locks.checkSequencer(shown)).resolves.toBe('stale');
  });

  it('are undone when the work throws, and the next token is higher all the same', async () => {
    let failed = 0n;
    const work = locks.withLock('sale', async (lock) => {
      failed = lock.fencingToken;
      await sell(lock);
      throw new Error('changed my mind');
    });
    await expect(work).rejects.toThrow('changed my mind');
    expect(await stock()).toBe(10);
    await locks.withLock('sale', (lock) => expect(lock.fencingToken).toBeGreaterThan(failed));
  });

  it('are undone by a release without complete(), and kept with it', async () => {
    const undone = await locks.acquire('sale');
    await sell(undone);
    await undone.release();
    expect(await stock()).toBe(10);
    const kept = await locks.acquire('sale');
    await sell(kept);
    await kept.complete();
    await kept.release();
    expect(await stock()).toBe(9);
  });

  it('of 40 callers are serialised, each on what the one before left', async () => {
    const buy = (lock: LockHandle) => sell(lock);
    await harness.ask('update stock set n = 40');
    await Promise.all(Array.from({ length: 40 }, () => locks.withLock('sale', buy, { waitMs: 30_000 })));
    expect(await stock()).toBe(0);
  });

  it('need this strategy', async () => {
    await using leases = new LockService(typeorm({ dataSource: { options: harness.dataSource() }, synchronize: true }));
    await using lock = await leases.acquire('other');
    expect(() => rowManager(lock)).toThrow(/strategy: 'row'/u);
  });
}
