import { DataSource, type DataSourceOptions } from 'typeorm';
import { type SessionBackendOptions, sessionBackend } from '../../../lib/backends/typeorm/session/session-backend.js';
import { advisoryLockId, userLockName } from '../../../lib/backends/typeorm/session/session-lock-name.js';
import type { BackendHarness } from '../../conformance/backend-harness.js';
import { eventually } from '../../support/eventually.js';
import { MariadbServer } from '../../servers/mariadb-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';

export interface SessionHarness extends BackendHarness {
  readonly server: () => PostgresServer | MariadbServer;
  readonly options: (port?: number) => DataSourceOptions;
  /** What an operator asks, over a connection of his own. */
  ask(sql: string): Promise<Record<string, unknown>[]>;
  /** Ends the session that has the key. */
  revoke(key: string): Promise<void>;
}

const SERVERS = { postgres: PostgresServer, mariadb: MariadbServer };

/** The ids of the sessions that have a key, and how an operator ends one. */
const OPERATOR = {
  postgres: {
    sessions: (key: string, _database: string) =>
      `select pid as id from pg_locks where locktype = 'advisory' and granted and objsubid = 1
       and ((classid::bigint << 32) | objid::bigint) = ${advisoryLockId('\0distributed_lock', key)}`,
    kill: (id: unknown) => `select pg_terminate_backend(${String(id)})`,
  },
  mariadb: {
    sessions: (key: string, database: string) =>
      `select id from (select is_used_lock('${userLockName(`${database}\0distributed_lock`, key)}') as id) as used where id is not null`,
    kill: (id: unknown) => `kill connection ${String(id)}`,
  },
};

export function sessionHarness(type: keyof typeof SERVERS, shortTtlMs: number): SessionHarness {
  let server: PostgresServer | MariadbServer;
  let operator: DataSource;
  const options = (port = server.port): DataSourceOptions => ({
    type,
    url: server.url.replace(`:${server.port}/`, `:${port}/`),
  });
  const ask: SessionHarness['ask'] = (sql) => operator.query(sql);
  const leftovers = async (key: string): Promise<string[]> =>
    (await ask(OPERATOR[type].sessions(key, new URL(server.url).pathname.slice(1)))).map(({ id }) => String(id));
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
    connect: async () => connectSession(options(), { sessionTtlMs: shortTtlMs }),
    // The process harness knows no session strategy yet.
    connection: null,
    revoke: async (key) => {
      const sessions = await leftovers(key);
      if (sessions.length === 0) throw new Error(`no session has ${key}`);
      for (const id of sessions) {
        await ask(OPERATOR[type].kill(id));
        await eventually(async () => !(await leftovers(key)).includes(id));
      }
    },
    leftovers,
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    // Locks of sessions do not survive their server, with or without its data: see the spec.
    restart: null,
    order: 'none',
    namesHolder: true,
    shortTtlMs,
    wakesWithinMs: 500,
  };
}

export function connectSession(options: DataSourceOptions, more: SessionBackendOptions = {}) {
  return sessionBackend({ options }, { synchronize: true, ...more });
}
