import { type Query, readRows } from '../sql/connections/query.js';
import type { DriverConnection, SqlDatabase } from '../sql/connections/sql-database.js';
import { postgresDialect } from '../sql/postgres/dialect.js';

/** The used part of a `PGlite` of `@electric-sql/pglite`: PostgreSQL inside of this process. */
export interface Pglite {
  query(sql: string, parameters?: unknown[]): Promise<{ rows: unknown[] }>;
  /** Promise that resolves when PostgreSQL has started. */
  readonly waitReady?: Promise<unknown>;
}

/** Time-out for the start of PostgreSQL. It takes seconds if the process is busy, or has to download PostgreSQL. */
const START_TIMEOUT_MS = 10_000;

/** Dialect without all that needs a second connection: PGlite has one only, which the application uses. */
const { waitingLine: _line, rowLocks: _rowLocks, sessionLocks: _sessionLocks, ...PGLITE_DIALECT } = postgresDialect;

export function pgliteDatabase(pglite: Pglite, schema: string | undefined): SqlDatabase {
  return {
    name: 'pglite',
    dialect: { ...PGLITE_DIALECT, maxConnections: 1 },
    schema,
    connectTimeoutMs: 2_000,
    startTimeoutMs: START_TIMEOUT_MS,
    creationAdvice: 'Create it with the statements of npx nestjs-distributed-lock sql --database postgres',
    synchronizeExample: 'postgres({ pglite, synchronize: true })',
    createConnection: () => new PgliteConnection(pglite),
  };
}

class PgliteConnection implements DriverConnection {
  constructor(private readonly pglite: Pglite) {}

  async connect(): Promise<Pglite> {
    await this.pglite.waitReady;
    return this.pglite;
  }

  readonly query: Query = async (sql, parameters) => readRows((await this.pglite.query(sql, [...parameters])).rows);

  /** Does nothing: the application closes its PGlite. */
  async end(): Promise<void> {}
}
