import { fromTypeOrm } from 'nestjs-distributed-lock/sql';
import { DataSource, type EntityManager } from 'typeorm';
import { idsOf } from './databases.js';
import { describeAdapter } from './describe-adapter.js';
import type { Work } from './orm-client.js';

function workIn(manager: EntityManager, placeholder: string): Work {
  return {
    tx: fromTypeOrm(manager),
    write: async (id) => void (await manager.query(`insert into note (id) values (${placeholder})`, [id])),
    read: async () => idsOf(await manager.query('select id from note')),
    nest: (work) => manager.transaction((inner) => work(workIn(inner, placeholder))),
  };
}

describeAdapter('fromTypeOrm', async (database, url) => {
  const placeholder = database === 'postgres' ? '$1' : '?';
  const dataSource = await new DataSource({ type: database, url }).initialize();
  return {
    transaction: (work, { repeatableRead } = { repeatableRead: false }) => {
      const run = (manager: EntityManager): Promise<void> => work(workIn(manager, placeholder));
      return repeatableRead ? dataSource.transaction('REPEATABLE READ', run) : dataSource.transaction(run);
    },
    outside: () => fromTypeOrm(dataSource.manager),
    end: () => dataSource.destroy(),
  };
});
