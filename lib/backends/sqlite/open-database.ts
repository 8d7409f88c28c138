import { importClient } from '../../core/index.js';
import { BUSY_TIMEOUT_MS, type SqliteDatabase } from '../sql/sqlite/driver.js';
import { type NodeDatabase, NodeSqliteDatabase } from './node-sqlite.js';

/** The class of a driver such as `better-sqlite3`. */
export type SqliteDriver = new (file: string, options: { readonly timeout: number }) => SqliteDatabase;

const OPTIONS = { timeout: BUSY_TIMEOUT_MS };

/** Opens a file. @throws LockConfigurationError when no driver is there; what the driver throws */
export async function openDatabase(file: string, driver: SqliteDriver | undefined): Promise<SqliteDatabase> {
  if (driver) return new driver(file, OPTIONS);
  const ofNode: unknown = process.getBuiltinModule?.('node:sqlite');
  if (hasDatabaseSync(ofNode)) return NodeSqliteDatabase.open(() => new ofNode.DatabaseSync(file, OPTIONS));
  const BetterSqlite3 = await importBetterSqlite3();
  return new BetterSqlite3(file, OPTIONS);
}

function importBetterSqlite3(): Promise<SqliteDriver> {
  const name: string = 'better-sqlite3';
  const load = async (): Promise<SqliteDriver> => {
    const { default: driver }: { readonly default: SqliteDriver } = await import(name);
    return driver;
  };
  return importClient(load, { neededBy: 'sqlite() on this version of Node', name, install: name, option: 'driver' });
}

interface NodeSqlite {
  readonly DatabaseSync: new (file: string, options: { readonly timeout: number }) => NodeDatabase;
}

function hasDatabaseSync(module: unknown): module is NodeSqlite {
  return typeof module === 'object' && module !== null && 'DatabaseSync' in module;
}
