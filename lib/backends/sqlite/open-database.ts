import { LockConfigurationError } from '../../core/index.js';
import { BUSY_TIMEOUT_MS, type SqliteDatabase } from '../sql/sqlite/driver.js';
import { type NodeDatabase, NodeSqliteDatabase } from './node-sqlite.js';

/** The class of a driver such as `better-sqlite3`. */
export type SqliteDriver = new (file: string, options: { readonly timeout: number }) => SqliteDatabase;

const OPTIONS = { timeout: BUSY_TIMEOUT_MS };

/**
 * Opens a file. An application that has `better-sqlite3` uses it, and two copies of SQLite in one process do not see
 * each other's locks: so `node:sqlite` comes second. https://sqlite.org/howtocorrupt.html
 * @throws LockConfigurationError when no driver is there; what the driver throws
 */
export async function openDatabase(file: string, driver: SqliteDriver | undefined): Promise<SqliteDatabase> {
  const Driver = driver ?? (await findBetterSqlite3());
  if (Driver) return new Driver(file, OPTIONS);
  const ofNode: unknown = process.getBuiltinModule?.('node:sqlite');
  if (hasDatabaseSync(ofNode)) return NodeSqliteDatabase.open(() => new ofNode.DatabaseSync(file, OPTIONS));
  const why = 'this version of Node has no node:sqlite: npm install better-sqlite3, or give a driver';
  throw new LockConfigurationError(`sqlite() needs a driver, and ${why}`, 'driver');
}

async function findBetterSqlite3(): Promise<SqliteDriver | undefined> {
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
