import { fromSequelize } from 'nestjs-distributed-lock/sql';
import { QueryTypes, Sequelize, Transaction } from 'sequelize';
import { idsOf } from './databases.js';
import { describeAdapter } from './describe-adapter.js';
import type { Client, Work } from './orm-client.js';

type Dialect = 'postgres' | 'mysql' | 'mariadb';

describeAdapter('fromSequelize', async (database, url) => open(url, database === 'postgres' ? 'postgres' : 'mysql'));

describeAdapter('fromSequelize by the driver mariadb', async (_, url) => open(url, 'mariadb'), {
  databases: ['mariadb'],
});

async function open(url: string, dialect: Dialect): Promise<Client> {
  const sequelize = new Sequelize(url.replace(/^\w+/u, dialect), { dialect, logging: false });
  // A transaction that is over is what somebody has who does not wait for the end of the one that he began.
  const over = await sequelize.transaction();
  await over.commit();
  return {
    transaction: (work, { repeatableRead } = { repeatableRead: false }) =>
      sequelize.transaction(
        repeatableRead ? { isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ } : {},
        (transaction) => work(workIn(sequelize, transaction)),
      ),
    outside: () => fromSequelize(sequelize, over),
    end: () => sequelize.close(),
  };
}

function workIn(sequelize: Sequelize, transaction: Transaction): Work {
  return {
    tx: fromSequelize(sequelize, transaction),
    write: async (id) =>
      void (await sequelize.query('insert into note (id) values (:id)', { replacements: { id }, transaction })),
    read: async () => idsOf(await sequelize.query('select id from note', { type: QueryTypes.SELECT, transaction })),
    nest: (work) => sequelize.transaction({ transaction }, (inner) => work(workIn(sequelize, inner))),
  };
}
