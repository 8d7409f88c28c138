import { type BackendFactory, LockConfigurationError } from '../../core/index.js';
import { parseAddresses, assertDecodable, type ServerAddress } from '../sql/connections/server-address.js';
import type { Sockets } from '../sql/connections/sockets.js';
import type { SqlDatabase } from '../sql/connections/sql-database.js';
import { mysqlDialect } from '../sql/mysql/dialect.js';
import { createSqlBackend, type StrategyOptions } from '../sql/strategies.js';
import { MysqlConnection, type MysqlConnectionOptions } from './mysql-connection.js';

/** Address and options of the server. */
export interface MysqlServer extends ServerAddress {
  /**
   * Options of `mysql2`, such as `ssl` or `socketPath`. `password` may be a function, which is called for each new
   * connection.
   * @see https://sidorares.github.io/node-mysql2/docs
   */
  connection?: MysqlConnectionOptions;
}

/** Each strategy describes its own options. All processes must use the same strategy. @interface */
export type MysqlOptions = MysqlServer & StrategyOptions;

const CONNECT_TIMEOUT_MS = 2_000;
/** Parameters of a URL by which other clients ask for TLS. `mysql2` has `ssl`, and ignores these. */
const FOREIGN_TLS_PATTERN = /^(?:(?:use|require|verify)_?ssl|ssl[-_]?(?:mode|ca|cert|key)|tls)$/iu;

/**
 * Locks in a database of MySQL or MariaDB by the package `mysql2`, on a few connections of their own. The tables and
 * keys are those of `typeorm()`, so that services of both kinds exclude each other.
 * @throws LockConfigurationError for options that can never work. The first request rejects with one where `mysql2` is
 *   missing
 */
export function mysql(options: MysqlOptions): BackendFactory {
  return createSqlBackend(mysqlDatabase(options), options, ['url', 'connection']);
}

/** @throws LockConfigurationError for options that can never work */
export function mysqlDatabase(server: MysqlServer): SqlDatabase {
  const { url, connection } = server;
  if (url === undefined && typeof connection !== 'object') {
    throw new LockConfigurationError('mysql() needs url, or connection with options of mysql2', 'url');
  }
  const addresses = parseAddresses(server, ['mysql:', 'mariadb:']);
  assertDecodable(server);
  assertTlsIsUnderstood(server);
  const createMysqlConnection = (sockets: Sockets): MysqlConnection =>
    new MysqlConnection(connection ?? {}, addresses, sockets);
  return {
    name: 'mysql',
    dialect: mysqlDialect,
    schema: undefined,
    connectTimeoutMs: Math.max(CONNECT_TIMEOUT_MS, (connection?.connectTimeout ?? 0) * addresses.count),
    creationAdvice: 'Run npx nestjs-distributed-lock migrate',
    synchronizeExample: 'mysql({ url, synchronize: true })',
    createConnection: createMysqlConnection,
    createTransactionConnection: createMysqlConnection,
  };
}

/** @throws LockConfigurationError for a parameter that asks for TLS, and would be ignored */
function assertTlsIsUnderstood({ url }: ServerAddress): void {
  for (const address of [url ?? []].flat()) {
    const name = [...new URL(address).searchParams.keys()].find((one) => FOREIGN_TLS_PATTERN.test(one));
    if (name === undefined) continue;
    throw new LockConfigurationError(
      `mysql2 ignores ${name} in the url, and would connect without TLS: give connection: { ssl: {} }`,
      'url',
    );
  }
}
