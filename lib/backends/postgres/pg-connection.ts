import type { Duplex } from 'node:stream';
import type { Client, ClientConfig } from 'pg';
import { importClient } from '../../core/index.js';
import { ADDRESS_MS, type Addresses } from '../sql/connections/addresses.js';
import { DatabaseError, switchOverError } from '../sql/connections/database-error.js';
import { isTrue, type Query, readRows } from '../sql/connections/query.js';
import { type Sockets, STREAM_OF_CONNECTION, streamIn } from '../sql/connections/sockets.js';
import type { Around, DriverTransaction, TransactionConnection } from '../sql/connections/sql-database.js';
import { StatementTransaction } from '../sql/connections/statement-transaction.js';

type PgClient = new (config: ClientConfig) => Client;

/** Loads the driver. @throws LockConfigurationError when it is not installed */
function loadPg(): Promise<PgClient> {
  const load = async (): Promise<PgClient> => (await import('pg')).default.Client;
  return importClient(load, { neededBy: 'postgres()', name: 'pg', install: 'pg', option: 'connection' });
}

const BEGINNING = ['begin isolation level read committed'];

/** One connection by the package `pg`. */
export class PgConnection implements TransactionConnection {
  #client: Client | undefined;
  #hasEnded = false;

  constructor(
    private readonly options: ClientConfig,
    private readonly addresses: Addresses,
    private readonly sockets: Sockets,
  ) {}

  async connect(): Promise<Client> {
    const PgClient = await loadPg();
    const client = await this.addresses.openFirst((url) => this.#open(PgClient, url));
    this.#client = client;
    if (this.#hasEnded) await client.end();
    return client;
  }

  readonly query: Query = (sql, parameters) => queryOn(this.#connected, sql, parameters);

  async lend(around: Around): Promise<DriverTransaction> {
    const client = this.#connected;
    const send: Query = (sql, parameters) => queryOn(client, sql, parameters);
    const parts = { client, send, holders: client, methods: ['query'], beginning: BEGINNING };
    return new StatementTransaction(parts, around);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#client?.end();
  }

  get #connected(): Client {
    if (this.#client) return this.#client;
    throw new DatabaseError('the connection is not open', undefined);
  }

  async #open(PgClient: PgClient, url: string): Promise<Client> {
    const given = streamIn(this.options);
    const isOneOfSeveral = this.addresses.count > 1;
    // The driver calls it with its options.
    const stream = (...[config]: unknown[]): Duplex =>
      given ? this.sockets.adopt(given(config), STREAM_OF_CONNECTION) : this.sockets.create();
    const config: ClientConfig = {
      fallback_application_name: 'nestjs-distributed-lock',
      ...(url !== '' && { connectionString: besideOptions(url, this.options) }),
      ...this.options,
      ...(isOneOfSeveral && { connectionTimeoutMillis: ADDRESS_MS }),
      stream,
    };
    const client = new PgClient(config);
    const { password } = this.options;
    if (password !== undefined && !says(url, 'password')) Object.assign(client, { password });
    // An 'error' without a listener ends the process. The end of the socket reports the loss.
    client.on('error', () => undefined);
    await client.connect();
    if (!isOneOfSeveral) return client;
    const [row] = await queryOn(client, `select current_setting('transaction_read_only') = 'on' as is_read_only`, []);
    if (!isTrue(row?.['is_read_only'])) return client;
    await client.end();
    throw switchOverError();
  }
}

/** The driver believes the URL alone, also in what it does not say. */
function says(url: string, part: 'username' | 'password'): boolean {
  if (url === '') return false;
  const { [part]: said, searchParams } = new URL(url);
  return said !== '' || searchParams.has(part === 'username' ? 'user' : part);
}

/** The URL, so that it takes nothing from the options: neither the user, nor certificates, which it cannot say. */
function besideOptions(url: string, { user, ssl }: ClientConfig): string {
  const address = new URL(url);
  if (user !== undefined && !says(url, 'username')) address.searchParams.set('user', user);
  if (typeof ssl === 'object' && Boolean(ssl)) for (const name of ['ssl', 'sslmode']) address.searchParams.delete(name);
  return address.href;
}

async function queryOn(client: Client, sql: string, parameters: readonly unknown[]): ReturnType<Query> {
  const result: unknown = await client.query(sql, [...parameters]);
  // Several statements have several results.
  const last: unknown = Array.isArray(result) ? result.at(-1) : result;
  return readRows(typeof last === 'object' && last !== null && 'rows' in last ? last.rows : []);
}
