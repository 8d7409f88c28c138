import type { ClientConfig } from 'pg';
import { type BackendFactory, LockConfigurationError } from '../../core/index.js';
import { parseAddresses, type ServerAddress } from '../sql/connections/server-address.js';
import type { Sockets } from '../sql/connections/sockets.js';
import type { SqlDatabase } from '../sql/connections/sql-database.js';
import { postgresDialect } from '../sql/postgres/dialect.js';
import { createSqlBackend, type StrategyOptions } from '../sql/strategies.js';
import { PgConnection } from './pg-connection.js';
import { type Pglite, pgliteDatabase } from './pglite.js';

/** Address and options of the server. Without `url` and `connection`, PostgreSQL's environment variables tell them. */
export interface PostgresServer extends ServerAddress {
  /**
   * Options of `pg`, such as `ssl`, or `password` as a function, which is called for each new connection.
   * @see https://node-postgres.com/apis/client
   */
  connection?: ClientConfig;
  /** The schema of the table. @default `schema` in the query of `url`, else what the connection's `search_path` says */
  schema?: string;
  /**
   * Instead of `url` and `connection`: a PostgreSQL inside of this process, for development and tests. It has the
   * strategy `lease` only. A transaction of PGlite lets no other statement in: take the lock before the transaction.
   */
  pglite?: Pglite;
}

/** Each strategy describes its own options. All processes must use the same strategy. @interface */
export type PostgresOptions = PostgresServer & StrategyOptions;

const CONNECT_TIMEOUT_MS = 2_000;

/**
 * Locks in a PostgreSQL database by the package `pg`, on a few connections of their own. The tables and keys are those
 * of `typeorm()`, so that services of both kinds exclude each other.
 * @throws LockConfigurationError for options that can never work. The first request rejects with one where `pg` is
 *   missing
 */
export function postgres(options: PostgresOptions): BackendFactory {
  return createSqlBackend(postgresDatabase(options), options, ['url', 'connection', 'schema', 'pglite']);
}

/** @throws LockConfigurationError for options that can never work */
export function postgresDatabase(server: PostgresServer): SqlDatabase {
  const { connection = {}, pglite } = server;
  const schema = server.schema ?? getSchema(server.url);
  if (pglite) return pgliteDatabase(pglite, schema);
  if (typeof connection !== 'object') {
    throw new LockConfigurationError('connection must be an object with options of pg', 'connection');
  }
  const addresses = parseAddresses(server, ['postgres:', 'postgresql:']);
  const createPgConnection = (sockets: Sockets): PgConnection => new PgConnection(connection, addresses, sockets);
  return {
    name: 'postgres',
    dialect: postgresDialect,
    schema,
    connectTimeoutMs: Math.max(CONNECT_TIMEOUT_MS, (connection.connectionTimeoutMillis ?? 0) * addresses.count),
    creationAdvice: 'Run npx nestjs-distributed-lock migrate',
    synchronizeExample: 'postgres({ url, synchronize: true })',
    createConnection: createPgConnection,
    createTransactionConnection: createPgConnection,
  };
}

/** Returns the schema in the query of the first URL, where URLs for Prisma have it. */
function getSchema(url: PostgresServer['url']): string | undefined {
  const [firstUrl] = [url].flat();
  return firstUrl !== undefined && URL.canParse(firstUrl)
    ? (new URL(firstUrl).searchParams.get('schema') ?? undefined)
    : undefined;
}
