import type { Duplex } from 'node:stream';
import type { Client, ClientConfig } from 'pg';
import { importClient } from '../../core/index.js';
import type { Addresses } from '../sql/connections/addresses.js';
import { DatabaseError, switchOverError } from '../sql/connections/database-error.js';
import { heldClient } from '../sql/connections/held-client.js';
import { type Query, readRows } from '../sql/connections/query.js';
import { type Sockets, streamIn } from '../sql/connections/sockets.js';
import type { Around, DriverTransaction, TransactionConnection } from '../sql/connections/sql-database.js';

type PgClient = new (config: ClientConfig) => Client;

/** Loads the driver. @throws LockConfigurationError when it is not installed */
export function loadPg(): Promise<PgClient> {
  const load = async (): Promise<PgClient> => (await import('pg')).default.Client;
  return importClient(load, { neededBy: 'postgres()', name: 'pg', install: 'pg', option: 'connection' });
}

const STREAM = { name: 'stream of connection', option: 'connection' } as const;

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
    return new PgTransaction(this.#connected, around);
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
      given ? this.sockets.adopt(given(config), STREAM) : this.sockets.create();
    const config: ClientConfig = {
      fallback_application_name: 'nestjs-distributed-lock',
      ...(url !== '' && { connectionString: url }),
      ...this.options,
      // The next address needs its time, too.
      ...(isOneOfSeveral && { connectionTimeoutMillis: ADDRESS_MS }),
      stream,
    };
    const client = new PgClient(config);
    // An 'error' without a listener ends the process. The end of the socket reports the loss.
    client.on('error', () => undefined);
    await client.connect();
    if (!isOneOfSeveral) return client;
    const [row] = await queryOn(client, `select current_setting('transaction_read_only') = 'on' as is_read_only`, []);
    if (row?.['is_read_only'] !== true) return client;
    await client.end();
    throw switchOverError();
  }
}

/** Time for one of several addresses. */
const ADDRESS_MS = 700;

async function queryOn(client: Client, sql: string, parameters: readonly unknown[]): ReturnType<Query> {
  const result: unknown = await client.query(sql, [...parameters]);
  // Several statements have several results.
  const last: unknown = Array.isArray(result) ? result.at(-1) : result;
  return readRows(typeof last === 'object' && last !== null && 'rows' in last ? last.rows : []);
}

class PgTransaction implements DriverTransaction {
  readonly attachment: Client;
  isActive = false;
  #isReleased = false;

  constructor(
    readonly client: Client,
    private readonly around: Around,
  ) {
    this.attachment = heldClient(client, ['query'], around, () => this.#isReleased);
  }

  async begin(): Promise<void> {
    await this.query('begin isolation level read committed', []);
    this.isActive = true;
  }

  async commit(): Promise<void> {
    await this.query('commit', []);
    this.isActive = false;
  }

  async rollback(): Promise<void> {
    await this.query('rollback', []);
    this.isActive = false;
  }

  readonly query: Query = (sql, parameters) => this.around(() => this.send(sql, parameters));

  readonly send: Query = (sql, parameters) => queryOn(this.client, sql, parameters);

  async release(): Promise<void> {
    this.#isReleased = true;
  }
}
