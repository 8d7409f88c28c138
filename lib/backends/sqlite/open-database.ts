import { LockConfigurationError } from '../../core/index.js';
import { BUSY_TIMEOUT_MS, type SqliteDatabase } from '../sql/sqlite/driver.js';
import { type NodeDatabase, NodeSqliteDatabase } from './node-sqlite.js';

/** The class of a driver such as `better-sqlite3`. */
export type SqliteDriver = new (file: string, options: { readonly timeout: number }) => SqliteDatabase;

const DATABASE_OPTIONS = { timeout: BUSY_TIMEOUT_MS };

/**
 * Opens a file. Prefers `better-sqlite3` where it is installed, because the application then uses that package, too.
 * Two copies of SQLite in one process do not see each other's locks. https://sqlite.org/howtocorrupt.html
 * @throws LockConfigurationError when there is no driver; the driver's error
 */
export async function openDatabase(file: string, driver: SqliteDriver | undefined): Promise<SqliteDatabase> {
  const Driver = driver ?? (await findBetterSqlite3());
  if (Driver) return new Driver(file, DATABASE_OPTIONS);
  const nodeSqlite: unknown = process.getBuiltinModule?.('node:sqlite');
  if (hasDatabaseSync(nodeSqlite))
    return NodeSqliteDatabase.open(() => new nodeSqlite.DatabaseSync(file, DATABASE_OPTIONS));
  const advice = 'this version of Node has no node:sqlite: npm install better-sqlite3, or give a driver';
  throw new LockConfigurationError(`sqlite() needs a driver, and ${advice}`, 'driver');
}

async function findBetterSqlite3(): Promise<SqliteDriver | undefined> {
  // Declared as any text, so that the compiler does not look for the package, which may not be installed.
  const name: string = 'better-sqlite3';
  try {
    const { default: driver }: { readonly default: SqliteDriver } = await import(name);
    return driver;
  } catch {
    return undefined;
  }
}

interface NodeSqlite {
  readonly DatabaseSync: new (file: string, options: { readonly timeout: number }) => NodeDatabase;
}

function hasDatabaseSync(module: unknown): module is NodeSqlite {
  return typeof module === 'object' && module !== null && 'DatabaseSync' in module;
}
