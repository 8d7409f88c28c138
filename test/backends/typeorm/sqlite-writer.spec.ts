import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LockService } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import Database from 'libsql';
import { DataSource } from 'typeorm';
import { describeWanted, failureOf } from '../../support/index.js';
import { MEMORY_DIR } from '../../servers/memory-dir.js';

describeWanted(['sqlite'], '%s, which has one writer a file', () => {
  let directory = '';
  let dataSource: DataSource;

  beforeAll(async () => {
    directory = await mkdtemp(join(MEMORY_DIR, 'sqlite-writer-'));
    dataSource = await open('application.db');
    await dataSource.query('create table stock (n integer)');
  });
  afterAll(async () => {
    await dataSource.destroy();
    await rm(directory, { recursive: true });
  });

  const optionsOf = (file: string) =>
    ({ type: 'better-sqlite3', driver: Database, database: join(directory, file), enableWAL: true }) as const;
  const open = (file: string): Promise<DataSource> => new DataSource(optionsOf(file)).initialize();

  it('says to whoever asks for a lock inside of a writing transaction that this is why', async () => {
    const service = new LockService(typeorm({ dataSource, synchronize: true, patienceMs: 100 }));
    await (await service.acquire('k')).release();
    await dataSource.transaction(async (manager) => {
      await manager.query('insert into stock values (1)');
      const error = await failureOf(service.acquire('k'));
      expect(String(error)).toMatch(
        /in a transaction that writes to this SQLite file, such as one of the application/u,
      );
      expect(String(error)).toMatch(/a file of their own/u);
    });
    await service.close();
  });

  it('locks inside of a writing transaction where the locks have a file of their own', async () => {
    const locks = { options: optionsOf('locks.db') };
    const service = new LockService(typeorm({ dataSource: locks, synchronize: true, patienceMs: 100 }));
    await dataSource.transaction(async (manager) => {
      await manager.query('insert into stock values (1)');
      await (await service.acquire('k')).release();
    });
    await service.close();
  });
});
