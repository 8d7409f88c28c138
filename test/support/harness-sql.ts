import { DataSource } from 'typeorm';
import { storedKey } from '../../lib/backends/typeorm/stored-key.js';
import type { BackendHarness } from '../conformance/backend-harness.js';
import { MariadbServer } from '../servers/mariadb-server.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { connectBackend } from './harness-connection.js';

export type SqlServer = PostgresServer | MariadbServer;

export interface SqlHarness extends BackendHarness {
  /** For faults of its own. */
  readonly server: () => SqlServer;
  /** What an operator asks, over a connection of his own. */
  ask(sql: string, parameters?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
}

const SERVERS = { postgres: PostgresServer, mariadb: MariadbServer };

/** As the row of a key has it: PostgreSQL's text cannot hold NUL. */
const STORED = {
  postgres: (key: string) => storedKey(key.replaceAll('\\', '\\\\').replaceAll('\0', '\\0')),
  mariadb: (key: string) => Buffer.from(storedKey(key)),
};

/** A server of its own, which keeps its data, so that it can be restarted both ways. */
export function sqlHarness(type: keyof typeof SERVERS): SqlHarness {
  let server: SqlServer;
  const connection = () => ({ backend: type, url: server.url }) as const;
  const parameter = type === 'postgres' ? '$1' : '?';
  const ask: SqlHarness['ask'] = async (sql, parameters = []) => {
    const operator = await new DataSource({ type, url: server.url }).initialize();
    try {
      return await operator.query(sql, [...parameters]);
    } finally {
      await operator.destroy();
    }
  };
  return {
    server: () => server,
    ask,
    start: async () => {
      server = await SERVERS[type].start();
    },
    stop: () => server.stop(),
    connect: () => connectBackend(connection()),
    connection,
    revoke: async (key) => {
      await ask(`update distributed_lock set owner = null where lock_key = ${parameter}`, [STORED[type](key)]);
    },
    leftovers: async (key) => {
      const held = `select owner from distributed_lock where lock_key = ${parameter} and owner is not null`;
      const rows = await ask(held, [STORED[type](key)]).catch(nothingWithoutTable);
      return rows.map(({ owner }) => String(owner));
    },
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    restart: (options) => server.restart(options),
    order: 'none',
    namesHolder: true,
    shortTtlMs: 300,
    wakesWithinMs: type === 'postgres' ? 250 : 500,
  };
}

/** Nobody has asked for a lock yet since the server was restarted empty. */
function nothingWithoutTable(error: unknown): [] {
  if (/distributed_lock.* does ?n[o']t exist/u.test(String(error))) return [];
  throw error;
}
