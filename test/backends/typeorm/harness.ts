import type { LockBackend } from 'nestjs-distributed-lock/core';
import { DataSource } from 'typeorm';
import { atLeastMs, type BackendHarness, type Listener, timeLimitOf } from '../../support/index.js';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { connectBackend, type Door, type SqlConnection, type SqlOptions } from '../../support/harness-connection.js';
import { type Ask, OPERATORS } from './operators.js';

export type SqlServer = PostgresServer | MysqlServer;

export interface SqlHarness extends BackendHarness {
  /** MySQL speaks the SQL of MariaDB. */
  readonly type: 'postgres' | 'mariadb';
  /** The options of the strategy. */
  readonly strategy: SqlOptions;
  /** For faults of its own. */
  readonly server: () => SqlServer;
  readonly connection: (through?: Listener) => SqlConnection;
  /** Options of a data source of the application's. */
  readonly dataSource: (through?: Listener) => { readonly type: SqlConnection['backend']; readonly url: string };
  /** As `connect`, with further options of the strategy. */
  readonly connectWith: (options: SqlOptions) => Promise<LockBackend>;
  /** Asks as an operator, over a connection of its own. */
  readonly ask: Ask;
}

const SERVERS = {
  postgres: () => PostgresServer.start(),
  mariadb: () => MysqlServer.start('mariadb'),
  mysql: () => MysqlServer.start('mysql'),
};

type Promises = Pick<
  BackendHarness,
  | 'namesHolder'
  | 'looks'
  | 'shares'
  | 'shortTtlMs'
  | 'wakesWithinMs'
  | 'transactional'
  | 'boundToConnection'
  | 'revokesOthers'
>;

interface Strategy extends Promises {
  /** @default none */
  readonly order?: BackendHarness['order'];
  readonly type: keyof typeof SERVERS;
  /** @default typeorm */
  readonly door?: Door;
  readonly options: SqlOptions & { readonly strategy: keyof typeof OPERATORS };
}

/** A holder's name stands in the row that it has locked, where nobody sees it before the commit. */
const ROW = {
  transactional: true,
  boundToConnection: true,
  revokesOthers: true,
  namesHolder: false,
  looks: [],
  wakesWithinMs: atLeastMs(650),
} as const;
/** A new connection asks for the shape of the table, too, which takes some time on a busy machine. */
const ROW_OPTIONS = { strategy: 'row', poolSize: 60, connectTimeoutMs: Math.min(timeLimitOf(2_000), 6_000) } as const;
const SESSION = {
  boundToConnection: true,
  namesHolder: true,
  looks: ['token'],
  wakesWithinMs: atLeastMs(650),
} as const;

/** Those who wait ask again and again. */
const MYSQL_LEASE = {
  shares: true,
  transfers: true,
  namesHolder: true,
  looks: ['token', 'leftMs', 'evict', 'keys'],
  shortTtlMs: atLeastMs(500),
  wakesWithinMs: atLeastMs(650),
} as const;

/** MariaDB ends idle connections after whole seconds only: a lease is as long as that. */
const WHOLE_SECONDS_MS = Math.ceil(atLeastMs(1_000) / 1_000) * 1_000;

const POSTGRES_LEASE = {
  order: 'fifo',
  shares: true,
  transfers: true,
  namesHolder: true,
  looks: ['token', 'leftMs', 'line', 'evict', 'keys'],
  shortTtlMs: atLeastMs(500),
  wakesWithinMs: atLeastMs(650),
} as const;

/** With what a strategy cannot do, as data. Those of MySQL, and `postgres-driver`, come in by the driver's door. */
const STRATEGIES = {
  postgres: { type: 'postgres', options: { strategy: 'lease' }, ...POSTGRES_LEASE },
  'postgres-driver': { type: 'postgres', door: 'driver', options: { strategy: 'lease' }, ...POSTGRES_LEASE },
  mariadb: { type: 'mariadb', options: { strategy: 'lease' }, ...MYSQL_LEASE },
  mysql: { type: 'mysql', door: 'driver', options: { strategy: 'lease' }, ...MYSQL_LEASE },
  'postgres-row': { type: 'postgres', options: ROW_OPTIONS, shortTtlMs: atLeastMs(600), ...ROW },
  'postgres-driver-row': {
    type: 'postgres',
    door: 'driver',
    options: ROW_OPTIONS,
    shortTtlMs: atLeastMs(600),
    ...ROW,
  },
  'mariadb-row': { type: 'mariadb', options: ROW_OPTIONS, shortTtlMs: WHOLE_SECONDS_MS, ...ROW },
  'mysql-row': {
    type: 'mysql',
    door: 'driver',
    options: ROW_OPTIONS,
    shortTtlMs: WHOLE_SECONDS_MS,
    ...ROW,
  },
  'postgres-session': { type: 'postgres', options: { strategy: 'session' }, shortTtlMs: atLeastMs(1_000), ...SESSION },
  'postgres-driver-session': {
    type: 'postgres',
    door: 'driver',
    options: { strategy: 'session' },
    shortTtlMs: atLeastMs(1_000),
    ...SESSION,
  },
  'mariadb-session': {
    type: 'mariadb',
    options: { strategy: 'session' },
    shortTtlMs: WHOLE_SECONDS_MS,
    ...SESSION,
  },
  'mysql-session': {
    type: 'mysql',
    door: 'driver',
    options: { strategy: 'session' },
    shortTtlMs: WHOLE_SECONDS_MS,
    ...SESSION,
  },
} as const satisfies Record<string, Strategy>;

export type SqlBackendName = keyof typeof STRATEGIES;

/** Every strategy on the database servers of Debian. */
export const SQL_SERVERS = [
  'postgres',
  'mariadb',
  'postgres-row',
  'mariadb-row',
  'postgres-session',
  'mariadb-session',
] as const satisfies readonly SqlBackendName[];

export interface SqlHarnessOptions {
  /** The TTL of all locks of a session, whatever a caller asks for. @default the shortest worth testing */
  readonly sessionTtlMs?: number;
}

/** A server of its own, which keeps its data, so that it can be restarted both ways. */
export function sqlHarness(name: SqlBackendName, { sessionTtlMs }: SqlHarnessOptions = {}): SqlHarness {
  const { type, door = 'typeorm', options: common, ...promises }: Strategy = STRATEGIES[name];
  const bySession = common.strategy === 'session';
  const shortTtlMs = bySession ? (sessionTtlMs ?? promises.shortTtlMs) : promises.shortTtlMs;
  const options: SqlOptions = bySession ? { ...common, sessionTtlMs: shortTtlMs } : common;
  const locks = OPERATORS[common.strategy](type);
  let server: SqlServer;
  let operator: DataSource;
  const dataSource: SqlHarness['dataSource'] = (through = server) => ({ type, url: urlThrough(server.url, through) });
  const connection: SqlHarness['connection'] = (through) => ({
    backend: type,
    url: dataSource(through).url,
    door,
    options,
  });
  const ask: Ask = (sql, parameters = []) => operator.query(sql, [...parameters]);
  return {
    type: type === 'postgres' ? type : 'mariadb',
    strategy: options,
    server: () => server,
    dataSource,
    ask,
    start: async () => {
      server = await SERVERS[type]();
      operator = await new DataSource({ ...dataSource(), poolSize: 1 }).initialize();
    },
    stop: async () => {
      await operator.destroy();
      await server.stop();
    },
    connect: () => connectBackend(connection()),
    connectWith: (more) => connectBackend({ ...connection(), options: { ...options, ...more } }),
    connection,
    revoke: (key) => locks.revoke(ask, key),
    leftovers: (key) => locks.holders(ask, key),
    freeze: async () => {
      server.freeze();
      return async () => server.thaw();
    },
    restart: (how) => server.restart(how),
    order: 'none',
    ...promises,
    shortTtlMs,
  };
}

function urlThrough(url: string, { port }: Listener): string {
  return Object.assign(new URL(url), { port: String(port) }).href;
}
