import type { Duplex } from 'node:stream';
import type { Client, ClientConfig } from 'pg';
import { importClient } from '../../core/index.js';
import type { Addresses } from '../sql/connections/addresses.js';
import { assertTakesWrites } from '../sql/connections/assert-takes-writes.js';
import { DatabaseError } from '../sql/connections/database-error.js';
import { type Query, readRows } from '../sql/connections/query.js';
import { type Sockets, CONNECTION_STREAM_SETTING, getStreamFactory } from '../sql/connections/sockets.js';
import type { StatementRunner, DriverTransaction, TransactionConnection } from '../sql/connections/sql-database.js';
import { StatementTransaction } from '../sql/connections/statement-transaction.js';

type PgClientConstructor = new (config: ClientConfig) => Client;

/** @throws LockConfigurationError when the driver is not installed */
function loadPg(): Promise<PgClientConstructor> {
  const load = async (): Promise<PgClientConstructor> => (await import('pg')).default.Client;
  return importClient(load, { neededBy: 'postgres()', name: 'pg', install: 'pg', option: 'connection' });
}

const SELECT_IS_READ_ONLY_SQL = `select current_setting('transaction_read_only') = 'on' as is_read_only`;
const BEGIN_STATEMENTS = ['begin isolation level read committed'];

export class PgConnection implements TransactionConnection {
  #client: Client | undefined;
  #address = '';
  #hasEnded = false;

  constructor(
    private readonly options: ClientConfig,
    private readonly addresses: Addresses,
    private readonly sockets: Sockets,
  ) {}

  async connect(timeoutMs: number): Promise<Client> {
    const PgClient = await loadPg();
    const client = await this.addresses.openFirstWorking((url) => this.#open(PgClient, url, timeoutMs));
    this.#client = client;
    if (this.#hasEnded) await client.end();
    return client;
  }

  readonly query: Query = (sql, parameters) => runQuery(this.#readyClient, sql, parameters);

  async createTransaction(runStatement: StatementRunner): Promise<DriverTransaction> {
    const client = this.#readyClient;
    const send: Query = (sql, parameters) => runQuery(client, sql, parameters);
    const transactionOptions = {
      client,
      send,
      clientForHolders: client,
      statementMethods: ['query'],
      beginStatements: BEGIN_STATEMENTS,
    };
    return new StatementTransaction(transactionOptions, runStatement);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#client?.end();
  }

  tryAddressLast(): void {
    this.addresses.tryLast(this.#address);
  }

  get #readyClient(): Client {
    if (this.#client) return this.#client;
    throw new DatabaseError('the connection is not open', undefined);
  }

  async #open(PgClient: PgClientConstructor, url: string, timeoutMs: number): Promise<Client> {
    this.#address = url;
    const streamFactory = getStreamFactory(this.options);
    const hasSeveralAddresses = this.addresses.count > 1;
    // The driver calls `stream` with its options.
    const stream = (...[config]: unknown[]): Duplex =>
      streamFactory
        ? this.sockets.watchStream(streamFactory(config), CONNECTION_STREAM_SETTING)
        : this.sockets.create();
    const config: ClientConfig = {
      fallback_application_name: 'nestjs-distributed-lock',
      ...(url !== '' && { connectionString: prepareUrl(url, this.options) }),
      ...(hasSeveralAddresses && { connectionTimeoutMillis: this.addresses.getAddressTimeoutMs(timeoutMs) }),
      ...this.options,
      stream,
    };
    const client = new PgClient(config);
    const { password } = this.options;
    // The driver would prefer the empty password of a URL without one.
    if (password !== undefined && !hasUrlPart(url, 'password')) Object.assign(client, { password });
    // An 'error' event without a listener ends the process. `Sockets` reports a lost connection.
    client.on('error', () => undefined);
    await client.connect();
    if (hasSeveralAddresses) await assertTakesWrites(runQuery(client, SELECT_IS_READ_ONLY_SQL, []), () => client.end());
    return client;
  }
}

/** Returns whether the URL has this part. The driver then ignores the same part of the options. */
function hasUrlPart(url: string, part: 'username' | 'password'): boolean {
  if (url === '') return false;
  const { [part]: urlPart, searchParams } = new URL(url);
  return urlPart !== '' || searchParams.has(part === 'username' ? 'user' : part);
}

/** Returns the URL with the user of the options, and without SSL parameters that would replace `ssl` of the options. */
function prepareUrl(url: string, { user, ssl }: ClientConfig): string {
  const address = new URL(url);
  if (user !== undefined && !hasUrlPart(url, 'username')) address.searchParams.set('user', user);
  if (typeof ssl === 'object' && Boolean(ssl)) for (const name of ['ssl', 'sslmode']) address.searchParams.delete(name);
  return address.href;
}

async function runQuery(client: Client, sql: string, parameters: readonly unknown[]): ReturnType<Query> {
  const result: unknown = await client.query(sql, [...parameters]);
  // For several statements in one text, the driver returns an array of results.
  const lastResult: unknown = Array.isArray(result) ? result.at(-1) : result;
  return readRows(typeof lastResult === 'object' && lastResult !== null && 'rows' in lastResult ? lastResult.rows : []);
}
