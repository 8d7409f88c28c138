import { expect } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { KEY_ROWS } from '../../../lib/backends/typeorm/row/key-row.js';
import { type RowBackendOptions, rowBackend } from '../../../lib/backends/typeorm/row/row-backend.js';
import type { BackendHarness } from '../../conformance/backend-harness.js';
import { MariadbServer } from '../../servers/mariadb-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { eventually } from '../../support/eventually.js';

export interface RowHarness extends BackendHarness {
  readonly server: () => PostgresServer | MariadbServer;
  readonly options: (port?: number) => DataSourceOptions;
  /** What an operator asks, over a connection of his own. */
  ask(sql: string, parameters?: unknown[]): Promise<Record<string, unknown>[]>;
}

/** MariaDB makes its list of transactions anew when nobody has asked for it for a tenth of a second. */
export const LIST_MS = 120;

const SERVERS = { postgres: PostgresServer, mariadb: MariadbServer };

const OPERATOR = {
  postgres: {
    /** A row keeps the number of the transaction that changed it last, also while that one is open. */
    holders: `select pid as id from pg_stat_activity join distributed_lock on backend_xid::text = xmax::text
       where lock_key in ($1, $2)`,
    transactions: `select pid as id from pg_stat_activity where backend_xid is not null`,
    kill: (id: unknown) => `select pg_terminate_backend(${String(id)})`,
  },
  mariadb: {
    holders: `select 'somebody' as id from (select 1) as once where exists (select 1 from distributed_lock where lock_key = ?)
       and not exists (select 1 from distributed_lock where lock_key = ? for update skip locked)`,
    transactions: `select trx_mysql_thread_id as id from information_schema.innodb_trx where trx_rows_modified > 0`,
    kill: (id: unknown) => `kill connection ${String(id)}`,
  },
};

export function rowHarness(type: keyof typeof SERVERS, shortTtlMs: number): RowHarness {
  let server: PostgresServer | MariadbServer;
  let operator: DataSource;
  const options = (port = server.port): DataSourceOptions => ({
    type,
    url: server.url.replace(`:${server.port}/`, `:${port}/`),
  });
  const ask: RowHarness['ask'] = (sql, parameters) => operator.query(sql, parameters);
  const leftovers = async (key: string): Promise<string[]> => {
    const column = KEY_ROWS[type].columnOf(key);
    const rows = await ask(OPERATOR[type].holders, [column, column]).catch(nothingWithoutTable);
    return rows.map(({ id }) => String(id));
  };
  return {
    server: () => server,
    options,
    ask,
    start: async () => {
      server = await SERVERS[type].start();
      operator = await new DataSource({ ...options(), poolSize: 1 } as DataSourceOptions).initialize();
    },
    stop: async () => {
      await operator.destroy();
      await server.stop();
    },
    connect: async () => connectRow(options()),
    // The process harness knows no row strategy yet.
    connection: null,
    // A test that revokes has one transaction open.
    revoke: async (key) => {
      expect(await leftovers(key)).toHaveLength(1);
      const kill = async (): Promise<void> => {
        for (const { id } of await ask(OPERATOR[type].transactions)) await ask(OPERATOR[type].kill(id)).catch(gone);
        expect(await leftovers(key)).toEqual([]);
      };
      await eventually(kill, { everyMs: LIST_MS });
    },
    leftovers,
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    // A transaction does not survive its server, with or without its data: see row-faults.spec.ts.
    restart: null,
    order: 'none',
    // The holder's name stands in the row, where nobody sees it before the commit.
    namesHolder: false,
    handsOver: false,
    shortTtlMs,
    wakesWithinMs: 500,
  };
}

export function connectRow(options: DataSourceOptions, more: RowBackendOptions = {}) {
  return rowBackend({ options }, { synchronize: true, poolSize: 60, ...more });
}

function nothingWithoutTable(error: unknown): [] {
  if (/distributed_lock.* does ?n[o']t exist/u.test(String(error))) return [];
  throw error;
}

/** What is left of an old list. */
function gone(error: unknown): void {
  if (!String(error).includes('Unknown thread id')) throw error;
}
