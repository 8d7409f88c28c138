import type { Connection, ConnectionOptions } from 'mysql2';
import { importClient } from '../../core/index.js';
import type { Addresses } from '../sql/connections/addresses.js';
import { assertTakesWrites } from '../sql/connections/assert-takes-writes.js';
import { DatabaseError } from '../sql/connections/database-error.js';
import { type Query, readRows } from '../sql/connections/query.js';
import { type Sockets, CONNECTION_STREAM_SETTING } from '../sql/connections/sockets.js';
import type { StatementRunner, DriverTransaction, TransactionConnection } from '../sql/connections/sql-database.js';
import { StatementTransaction } from '../sql/connections/statement-transaction.js';
import { createDriverOptions } from '../sql/mysql/driver.js';
import { IS_READ_ONLY_SQL } from '../sql/mysql/read-only.js';

type CreateConnection = (options: ConnectionOptions) => Connection;

/** Options of `mysql2`, whose password may be a function. */
export interface MysqlConnectionOptions extends Omit<ConnectionOptions, 'password'> {
  password?: string | (() => string | Promise<string>) | undefined;
}

/** @throws LockConfigurationError when the driver is not installed */
function loadMysql2(): Promise<CreateConnection> {
  const load = async (): Promise<CreateConnection> => (await import('mysql2')).default.createConnection;
  return importClient(load, { neededBy: 'mysql()', name: 'mysql2', install: 'mysql2', option: 'connection' });
}

const SELECT_IS_READ_ONLY_SQL = `select ${IS_READ_ONLY_SQL} as is_read_only`;
const BEGIN_STATEMENTS = ['set transaction isolation level read committed', 'start transaction'];

export class MysqlConnection implements TransactionConnection {
  #connection: Connection | undefined;
  #address = '';
  #hasEnded = false;

  constructor(
    private readonly options: MysqlConnectionOptions,
    private readonly addresses: Addresses,
    private readonly sockets: Sockets,
  ) {}

  async connect(timeoutMs: number): Promise<Connection> {
    const createConnection = await loadMysql2();
    const connection = await this.addresses.openFirstWorking((url) => this.#open(createConnection, url, timeoutMs));
    this.#connection = connection;
    if (this.#hasEnded) await endConnection(connection);
    return connection;
  }

  readonly query: Query = (sql, parameters) => runQuery(this.#readyConnection, sql, parameters);

  async createTransaction(runStatement: StatementRunner): Promise<DriverTransaction> {
    const client = this.#readyConnection;
    const send: Query = (sql, parameters) => runQuery(client, sql, parameters);
    const transactionOptions = {
      client,
      send,
      clientForHolders: client.promise(),
      statementMethods: ['query', 'execute'],
      beginStatements: BEGIN_STATEMENTS,
    };
    return new StatementTransaction(transactionOptions, runStatement);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    if (this.#connection) await endConnection(this.#connection);
  }

  tryAddressLast(): void {
    this.addresses.tryLast(this.#address);
  }

  get #readyConnection(): Connection {
    if (this.#connection) return this.#connection;
    throw new DatabaseError('the connection is not open', undefined);
  }

  async #open(createConnection: CreateConnection, url: string, timeoutMs: number): Promise<Connection> {
    this.#address = url;
    const { password, ...options } = this.options;
    const hasSeveralAddresses = this.addresses.count > 1;
    const connection = createConnection({
      supportBigNumbers: true,
      ...(url !== '' && { uri: url.replace(/^mariadb:/u, 'mysql:') }),
      ...(hasSeveralAddresses && { connectTimeout: this.addresses.getAddressTimeoutMs(timeoutMs) }),
      ...options,
      ...(password !== undefined && { password: typeof password === 'function' ? await password() : password }),
      ...createDriverOptions(this.sockets, options, CONNECTION_STREAM_SETTING),
    });
    // An 'error' event without a listener ends the process. `Sockets` reports a lost connection.
    connection.on('error', () => undefined);
    await new Promise<void>((resolve, reject) => {
      connection.connect((error) => (error ? reject(error) : resolve()));
    });
    if (hasSeveralAddresses)
      await assertTakesWrites(runQuery(connection, SELECT_IS_READ_ONLY_SQL, []), () => endConnection(connection));
    return connection;
  }
}

function runQuery(connection: Connection, sql: string, parameters: readonly unknown[]): ReturnType<Query> {
  return new Promise((resolve, reject) => {
    connection.query(sql, [...parameters], (error, result) => (error ? reject(error) : resolve(readRows(result))));
  });
}

function endConnection(connection: Connection): Promise<void> {
  return new Promise((resolve) => connection.end(() => resolve()));
}
