import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { PrismaPg } from '@prisma/adapter-pg';
import { fromPrisma } from 'nestjs-distributed-lock/sql';
import { idsOf } from './databases.js';
import { describeAdapter } from './describe-adapter.js';
import type { Client, Work } from './orm-client.js';
import { Prisma as MysqlPrisma, PrismaClient as MysqlClient } from './node_modules/.prisma-clients/mysql/index.js';
import {
  Prisma as PostgresPrisma,
  PrismaClient as PostgresClient,
} from './node_modules/.prisma-clients/postgres/index.js';

/** Made anew each time: a nested transaction writes its id into the options. */
const timeouts = () => ({ maxWait: 10_000, timeout: 20_000 });

function workInPostgres(tx: PostgresPrisma.TransactionClient): Work {
  return {
    tx: fromPrisma(tx, 'postgres'),
    write: async (id) => void (await tx.note.create({ data: { id } })),
    read: async () => idsOf(await tx.note.findMany()),
    nest: (work) => tx.$transaction((inner) => work(workInPostgres(inner)), timeouts()),
  };
}

function workInMysql(tx: MysqlPrisma.TransactionClient): Work {
  return {
    tx: fromPrisma(tx, 'mysql'),
    write: async (id) => void (await tx.note.create({ data: { id } })),
    read: async () => idsOf(await tx.note.findMany()),
    nest: (work) => tx.$transaction((inner) => work(workInMysql(inner)), timeouts()),
  };
}

function openPostgres(connectionString: string): Client {
  const prisma = new PostgresClient({ adapter: new PrismaPg({ connectionString }) });
  return {
    transaction: (work, { repeatableRead } = { repeatableRead: false }) =>
      prisma.$transaction((tx) => work(workInPostgres(tx)), {
        ...timeouts(),
        ...(repeatableRead && { isolationLevel: 'RepeatableRead' }),
      }),
    outside: () => fromPrisma(prisma, 'postgres'),
    end: () => prisma.$disconnect(),
  };
}

function openMysql(url: string): Client {
  const prisma = new MysqlClient({ adapter: new PrismaMariaDb(url.replace(/^mysql/u, 'mariadb')) });
  return {
    transaction: (work) => prisma.$transaction((tx) => work(workInMysql(tx)), timeouts()),
    outside: () => fromPrisma(prisma, 'mysql'),
    end: () => prisma.$disconnect(),
  };
}

describeAdapter('fromPrisma', async (database, url) => (database === 'postgres' ? openPostgres(url) : openMysql(url)));

describeAdapter(
  'fromPrisma with an extended client',
  async (_, connectionString) => {
    const prisma = new PostgresClient({ adapter: new PrismaPg({ connectionString }) });
    const extended = prisma.$extends({
      model: {
        note: {
          async ids() {
            return idsOf(await PostgresPrisma.getExtensionContext(this).findMany());
          },
        },
      },
    });
    return {
      transaction: (work, { repeatableRead } = { repeatableRead: false }) =>
        extended.$transaction(
          (tx) =>
            work({
              tx: fromPrisma(tx, 'postgres'),
              write: async (id) => void (await tx.note.create({ data: { id } })),
              read: () => tx.note.ids(),
            }),
          { ...timeouts(), ...(repeatableRead && { isolationLevel: 'RepeatableRead' }) },
        ),
      outside: () => fromPrisma(extended, 'postgres'),
      end: () => prisma.$disconnect(),
    };
  },
  { databases: ['postgres'] },
);
