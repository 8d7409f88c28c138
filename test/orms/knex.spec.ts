import knex, { type Knex } from 'knex';
import { fromKnex } from 'nestjs-distributed-lock/sql';
import { idsOf } from './databases.js';
import { describeAdapter } from './describe-adapter.js';
import type { Work } from './orm-client.js';

function workIn(trx: Knex.Transaction): Work {
  return {
    tx: fromKnex(trx),
    write: async (id) => void (await trx('note').insert({ id })),
    read: async () => idsOf(await trx('note').select('id')),
    nest: (work) => trx.transaction((inner) => work(workIn(inner))),
  };
}

describeAdapter('fromKnex', async (database, url) => {
  const db = knex({ client: database === 'postgres' ? 'pg' : 'mysql2', connection: url });
  return {
    transaction: (work, { repeatableRead } = { repeatableRead: false }) =>
      db.transaction((trx) => work(workIn(trx)), repeatableRead ? { isolationLevel: 'repeatable read' } : {}),
    outside: () => fromKnex(db),
    end: () => db.destroy(),
  };
});
