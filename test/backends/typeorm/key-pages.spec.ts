import { join } from 'node:path';
import { type LockBackend, LockService, openBackend } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import Database from 'libsql';
import { DataSource } from 'typeorm';
import { sqliteLeases } from '../../../lib/backends/sql/sqlite/leases.js';
import { createOwnColumns } from '../../../lib/backends/sql/dialect/lease-statements.js';
import { createQuery } from '../../../lib/backends/sql/connections/query.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { describeServers } from './sql-world.js';
import { TemporaryDirectory } from '../../support/temporary-directory.js';
import { MEMORY_DIR } from '../../servers/memory-dir.js';

const namesOf = async (backend: LockBackend, prefix: string): Promise<string[]> => {
  const found = [];
  for await (const page of backend.store.keys?.(prefix) ?? []) found.push(...page);
  return found.toSorted();
};

describeServers('the keys that begin with a key', (world, type) => {
  it('have that key itself among them', async () => {
    const backend = openBackend(typeorm({ dataSource: { options: { type, url: world.url } } }));
    const service = new LockService(backend);
    await Promise.all(['sale', 'sale_1', 'sal', 'sbl'].map((key) => service.acquire(key)));
    expect(await namesOf(backend, 'sale')).toEqual(['sale', 'sale_1']);
    await service.close();
  });
});

describeWanted(['sqlite'], 'a table of many rows, %s', () => {
  const directory = TemporaryDirectory.shared('sqlite-rows', MEMORY_DIR);

  const options = () => ({ type: 'better-sqlite3', driver: Database, database: join(directory, 'l.db') }) as const;

  it('lists a key that is equal to the prefix', async () => {
    const backend = openBackend(typeorm({ dataSource: { options: options() }, synchronize: true }));
    const service = new LockService(backend);
    await service.acquire('sale');
    expect(await namesOf(backend, 'sale')).toEqual(['sale']);
    await service.close();
  });

  it('is reaped in rounds of some thousand rows, between which others have their turn', async () => {
    const dataSource = await new DataSource(options()).initialize();
    const query = createQuery(dataSource);
    await query(
      `insert into distributed_lock (lock_key, token, expires_at, acquired_at)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
       select 'old' || i, 1, 0, 0 from n`,
      [],
    );
    const leases = sqliteLeases(createOwnColumns('distributed_lock'));
    const counts: unknown[] = [];
    const count = async (): Promise<void> => {
      const [row] = await query(`select count(*) as n from distributed_lock where lock_key like 'old%'`, []);
      counts.push(row?.['n']);
    };
    for (let isMore = true; isMore; await count()) isMore = await leases.reap(query, 1_000);
    expect(counts.length).toBeGreaterThan(1);
    expect(counts[0]).toBeGreaterThan(2_000);
    expect(counts.at(-1)).toBe(0);
    await dataSource.destroy();
  });
});
