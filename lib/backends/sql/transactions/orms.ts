import { LockConfigurationError } from '../../../core/index.js';
import { readRows } from '../connections/query.js';
import type { SqlName, SqlTransaction } from './sql-transaction.js';

/** Databases on which the clients of this file are tested. */
type ServerName = Exclude<SqlName, 'sqlite'>;

type Rows = Awaited<ReturnType<SqlTransaction['query']>>;

interface TypeOrmManager {
  query(sql: string, values?: unknown[]): Promise<unknown>;
  readonly connection: { readonly options: { readonly type: string } };
  readonly queryRunner?: { readonly isTransactionActive: boolean } | undefined;
}

/** Returns the transaction of an `EntityManager` of TypeORM, inside of `dataSource.transaction`. */
export function fromTypeOrm(manager: TypeOrmManager): SqlTransaction {
  return {
    database: getServerName('fromTypeOrm', manager.connection.options.type),
    query: async (sql, values) => readRows(await manager.query(sql, [...values])),
    isActive: () => manager.queryRunner?.isTransactionActive === true,
  };
}

interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...values: unknown[]): Promise<unknown>;
}

/** Returns the interactive transaction of Prisma: the `tx` of `prisma.$transaction(async (tx) => …)`. */
export function fromPrisma(tx: PrismaTransaction, database: ServerName): SqlTransaction {
  return {
    database: getServerName('fromPrisma', database),
    query: async (sql, values) => readRows(await tx.$queryRawUnsafe(sql, ...values)),
    // A transaction has no `$connect`, though it may have `$transaction` for inner transactions.
    isActive: () => typeof Reflect.get(tx, '$connect') !== 'function',
  };
}

interface KyselyTransaction {
  readonly isTransaction: boolean;
  /** Present in controlled transactions. */
  readonly isCommitted?: boolean;
  readonly isRolledBack?: boolean;
  executeQuery(query: never): Promise<{ readonly rows: unknown[] }>;
}

/**
 * Returns the transaction of Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`. Kysely reports the end
 * of controlled transactions only.
 */
export function fromKysely(trx: KyselyTransaction, database: ServerName): SqlTransaction {
  return {
    database: getServerName('fromKysely', database),
    async query(sql, parameters) {
      const queryId = { queryId: 'nestjs-distributed-lock' };
      const compiledQuery: unknown = {
        sql,
        parameters,
        queryId,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
      };
      return getRows(await callMethod(trx, 'executeQuery', compiledQuery));
    },
    isActive: () => trx.isTransaction && trx.isCommitted !== true && trx.isRolledBack !== true,
  };
}

interface KnexTransaction {
  readonly isTransaction?: boolean;
  isCompleted?(): boolean;
  readonly client: { readonly dialect?: string };
  raw(sql: string, bindings: never): PromiseLike<unknown>;
}

/** Returns the transaction of Knex: the `trx` of `knex.transaction(async (trx) => …)`. */
export function fromKnex(trx: KnexTransaction): SqlTransaction {
  return {
    database: getServerName('fromKnex', String(trx.client.dialect)),
    async query(text, parameters) {
      const { texts, values } = splitAtPlaceholders(text, parameters);
      return getRows(await callMethod(trx, 'raw', texts.join('?'), values));
    },
    isActive: () => trx.isTransaction === true && trx.isCompleted?.() !== true,
  };
}

interface SequelizeTransaction {
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

interface Sequelize {
  query(sql: string, options: never): Promise<unknown>;
  getDialect(): string;
}

/** Pattern of statements that return rows, also behind `set statement … for` of MariaDB. */
const QUERY_PATTERN = /^[^(]*\b(select|show)\b/u;

/** Returns the managed transaction of Sequelize: that of `sequelize.transaction(async (transaction) => …)`. */
export function fromSequelize(sequelize: Sequelize, transaction: SequelizeTransaction): SqlTransaction {
  return {
    database: getServerName('fromSequelize', sequelize.getDialect()),
    async query(text, parameters) {
      const { texts, values } = splitAtPlaceholders(text, parameters);
      const sql = texts.reduce((before, after, index) => `${before}$${index}${after}`);
      const options = {
        ...(values.length > 0 && { bind: values }),
        // Newer versions of the driver `mariadb` freeze the rows of a query that Sequelize does not recognize.
        ...(QUERY_PATTERN.test(text) && { type: 'SELECT' }),
        transaction,
        logging: false,
      };
      return readRows(await callMethod(sequelize, 'query', sql, options));
    },
    // Sequelize's types lack the field `finished`.
    isActive: () => Reflect.get(transaction, 'finished') === undefined,
  };
}

type SqlTag = (strings: TemplateStringsArray, ...values: never[]) => unknown;

/**
 * Returns the transaction of Drizzle: the `tx` of `db.transaction(async (tx) => …)`. Drizzle does not report the end of
 * the transaction.
 * @param sql the tag that `drizzle-orm` exports
 */
export function fromDrizzle(tx: object, sql: SqlTag, database: ServerName): SqlTransaction {
  return {
    database: getServerName('fromDrizzle', database),
    async query(text, parameters) {
      const { texts, values } = splitAtPlaceholders(text, parameters);
      const statement: unknown = Reflect.apply(sql, undefined, [Object.assign([...texts], { raw: texts }), ...values]);
      return getRows(await callMethod(tx, 'execute', statement));
    },
    // Transactions of Drizzle have `rollback`, and its databases have none.
    isActive: () => typeof Reflect.get(tx, 'rollback') === 'function',
  };
}

/** Calls a method of a client by its name, because the client's types would make its package a dependency. */
async function callMethod(client: object, name: string, ...args: readonly unknown[]): Promise<unknown> {
  const method: unknown = Reflect.get(client, name);
  if (typeof method === 'function') return Reflect.apply(method, client, args);
  throw new LockConfigurationError(`the client of this transaction has no method ${name}`, 'tx');
}

/**
 * Splits a statement at its placeholders, and returns the values in the order of the placeholders. A `$` within a name
 * is no placeholder.
 */
function splitAtPlaceholders(
  sql: string,
  values: readonly unknown[],
): { readonly texts: string[]; readonly values: unknown[] } {
  const texts = sql.split(/(?<![\w$])\$\d+|\?/u);
  const valueIndexes = [...sql.matchAll(/(?<![\w$])\$(\d+)/gu)].map(([, number]) => Number(number) - 1);
  return { texts, values: valueIndexes.length > 0 ? valueIndexes.map((index) => values[index]) : [...values] };
}

/** Returns the rows of a result: its `rows`, as in results of `pg`, or the result itself. */
function getRows(result: unknown): Rows {
  const isObject = typeof result === 'object' && result !== null && !Array.isArray(result);
  return readRows(isObject && 'rows' in result ? result.rows : result);
}

/** @throws LockConfigurationError for another database, on which no test runs these clients */
function getServerName(adapter: string, name: string): ServerName {
  if (/^(postgres|pg)/u.test(name)) return 'postgres';
  if (/^(mysql|mariadb)/u.test(name)) return 'mysql';
  throw new LockConfigurationError(
    `${adapter} works on PostgreSQL, MySQL and MariaDB; it was given ${name}. On SQLite take fromSqlite(database), with the ` +
      'connection of better-sqlite3 or node:sqlite whose transaction it is',
    'tx',
  );
}
