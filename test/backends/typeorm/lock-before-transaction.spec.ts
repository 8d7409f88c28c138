import { jest } from '@jest/globals';
import type { LockService } from 'nestjs-distributed-lock/core';
import { CreateDistributedLock1760000000000, fenced } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { describeWanted } from '../../support/wanted-backends.js';
import { SqlWorld } from './sql-world.js';

const CALLERS = 8;
const ROUNDS = 5;
const PATIENT = { waitMs: 60_000 };

describeWanted(['postgres', 'mariadb'], 'a lock and a transaction in REPEATABLE READ, %s', (type) => {
  const world = new SqlWorld(type);
  let dataSource: DataSource;

  beforeAll(async () => {
    await world.start();
    dataSource = await connected();
    await dataSource.query('create table sold (id integer primary key, n integer not null)');
    await dataSource.query('insert into sold values (1, 0)');
  });
  afterEach(async () => {
    await world.endTest();
    await dataSource.query('update sold set n = 0');
  });
  afterAll(async () => {
    await dataSource.destroy();
    await world.stop();
  });

  const connected = (): Promise<DataSource> =>
    new DataSource({
      type,
      url: world.url,
      poolSize: CALLERS,
      migrations: [CreateDistributedLock1760000000000],
      migrationsRun: true,
      ...(type === 'postgres' && { extra: { options: '-c default_transaction_isolation=repeatable\\ read' } }),
    }).initialize();
  const read = async (manager: EntityManager): Promise<number> => (await manager.query('select n from sold'))[0].n;
  const readAndAddOne = async (manager: EntityManager): Promise<void> => {
    await manager.query(`update sold set n = ${(await read(manager)) + 1}`);
  };

  /** How many of the calls committed. The others were refused by the database, as serialization failures. */
  const commitsOf = async (call: (service: LockService) => Promise<void>): Promise<number> => {
    const service = world.service();
    let commits = 0;
    const callers = Array.from({ length: CALLERS }, async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await call(service).then(
          () => (commits += 1),
          (error: unknown) => expect(error).toMatchObject({ code: expect.stringMatching(/^(40001|ER_CHECKREAD)$/u) }),
        );
      }
    });
    await Promise.all(callers);
    return commits;
  };

  /** PostgreSQL, and MariaDB from 11.6.2 on. */
  const refusesOldSnapshots = async (): Promise<boolean> => {
    if (type === 'postgres') return true;
    const [variable] = await dataSource.query("show variables like 'innodb_snapshot_isolation'");
    return variable?.Value === 'ON';
  };

  const lockFirst = (service: LockService): Promise<void> =>
    service.withLock('sold', (lock) => fenced(dataSource.manager, 'sold', lock, readAndAddOne), PATIENT);
  const transactionFirst =
    (source: DataSource) =>
    (service: LockService): Promise<void> =>
      source.transaction('REPEATABLE READ', async (manager) => {
        await read(manager);
        await service.withLock('sold', (lock) => fenced(manager, 'sold', lock, readAndAddOne), PATIENT);
      });

  it('loses no update where the lock comes first and fenced() begins the transaction', async () => {
    expect(await commitsOf(lockFirst)).toBe(CALLERS * ROUNDS);
    expect(await read(dataSource.manager)).toBe(CALLERS * ROUNDS);
  });

  it('warns once, or is refused by the database, where the transaction has read before the lock', async () => {
    const other = await connected();
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
    try {
      const commits = await commitsOf(transactionFirst(other));
      const sold = await read(dataSource.manager);
      process.stdout.write(`${type}: ${commits} of ${CALLERS * ROUNDS} committed, sold ${sold}\n`);
      if (await refusesOldSnapshots()) {
        expect(sold).toBe(commits);
        expect(commits).toBeLessThan(CALLERS * ROUNDS);
      } else {
        expect(sold).toBeLessThan(commits);
        expect(emitWarning.mock.calls.map(String)).toEqual([
          expect.stringMatching(/Take the lock first, then begin the transaction/u),
        ]);
      }
    } finally {
      emitWarning.mockRestore();
      await other.destroy();
    }
  });

  it('warns once of transactions that look at the same time', async () => {
    const other = await connected();
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
    const raised = (resource: string, token: bigint): Promise<void> =>
      fenced(dataSource.manager, resource, { fencingToken: token }, () => Promise.resolve());
    const runners = ['one', 'two'].map((resource) => ({ resource, runner: other.createQueryRunner() }));
    try {
      for (const { resource, runner } of runners) {
        await raised(resource, 1n);
        await runner.startTransaction('REPEATABLE READ');
        await read(runner.manager);
      }
      for (const { resource } of runners) await raised(resource, 2n);
      await Promise.allSettled(
        runners.map(({ resource, runner }) =>
          fenced(runner.manager, resource, { fencingToken: 3n }, () => Promise.resolve()),
        ),
      );
      expect(emitWarning).toHaveBeenCalledTimes(type === 'postgres' ? 0 : 1);
    } finally {
      emitWarning.mockRestore();
      for (const { runner } of runners) {
        await runner.rollbackTransaction();
        await runner.release();
      }
      await other.destroy();
    }
  });

  it('warns nobody whose transaction begins under the lock, whoever begins it', async () => {
    const other = await connected();
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
    try {
      const byHand = (service: LockService): Promise<void> =>
        service.withLock(
          'sold',
          (lock) =>
            other.transaction('REPEATABLE READ', async (manager) => {
              await read(manager);
              await fenced(manager, 'sold', lock, readAndAddOne);
            }),
          PATIENT,
        );
      expect(await commitsOf(byHand)).toBe(CALLERS * ROUNDS);
      expect(emitWarning).not.toHaveBeenCalled();
    } finally {
      emitWarning.mockRestore();
      await other.destroy();
    }
  });
});
