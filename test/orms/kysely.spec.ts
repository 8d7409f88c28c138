import { type Dialect, Kysely, MysqlDialect, PostgresDialect, type Transaction } from 'kysely';
import { createPool } from 'mysql2';
import { fromKysely } from 'nestjs-distributed-lock/sql';
import { Pool } from 'pg';
import { type DatabaseName, idsOf } from './databases.js';
import { describeAdapter } from './describe-adapter.js';
import type { Work } from './orm-client.js';

interface Tables {
  note: { id: string };
}

function dialectOf(database: DatabaseName, url: string): Dialect {
  if (database === 'postgres') return new PostgresDialect({ pool: new Pool({ connectionString: url }) });
  return new MysqlDialect({ pool: createPool({ uri: url }) });
}

function workIn(trx: Transaction<Tables>, database: DatabaseName): Work {
  return {
    tx: fromKysely(trx, database === 'postgres' ? 'postgres' : 'mysql'),
    write: async (id) => void (await trx.insertInto('note').values({ id }).execute()),
    read: async () => idsOf(await trx.selectFrom('note').selectAll().execute()),
  };
}

describeAdapter(
  'fromKysely',
  async (database, url) => {
    const db = new Kysely<Tables>({ dialect: dialectOf(database, url) });
    return {
      transaction(work, { repeatableRead } = { repeatableRead: false }) {
        const begin = repeatableRead ? db.transaction().setIsolationLevel('repeatable read') : db.transaction();
        return begin.execute((trx) => work(workIn(trx, database)));
      },
      outside: () => fromKysely(db, database === 'postgres' ? 'postgres' : 'mysql'),
      end: () => db.destroy(),
    };
  },
  { knowsItsEnd: false },
);

describeAdapter('fromKysely with a controlled transaction', async (database, url) => {
  const db = new Kysely<Tables>({ dialect: dialectOf(database, url) });
  return {
    async transaction(work, { repeatableRead } = { repeatableRead: false }) {
      const begin = repeatableRead ? db.startTransaction().setIsolationLevel('repeatable read') : db.startTransaction();
      const trx = await begin.execute();
      try {
        await work({
          ...workIn(trx, database),
          async nest(inner) {
            const saved = await trx.savepoint('inner').execute();
            await inner(workIn(saved, database));
            await saved.releaseSavepoint('inner').execute();
          },
        });
        await trx.commit().execute();
      } catch (error) {
        await trx.rollback().execute();
        throw error;
      }
    },
    outside: () => fromKysely(db, database === 'postgres' ? 'postgres' : 'mysql'),
    end: () => db.destroy(),
  };
});
