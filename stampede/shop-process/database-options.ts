import type { DataSourceOptions } from 'typeorm';
import { SALE_TABLES, makeSqliteOptions } from '../../sample-app/database/database.module.js';
import { detectDatabaseType } from './database-type.js';

/** @param database a file for SQLite, or the URL of a PostgreSQL or MariaDB database */
export function makeDatabaseOptions(database: string): DataSourceOptions {
  const type = detectDatabaseType(database);
  if (type === 'postgres') return { ...SALE_TABLES, type, url: database };
  if (type === 'mariadb') return { ...SALE_TABLES, type, url: database };
  if (type === 'sqlite') return makeSqliteOptions(database);
  throw new Error('a database is a file, or a URL of PostgreSQL or MariaDB');
}
