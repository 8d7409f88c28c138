import type { DataSourceOptions } from 'typeorm';
import { SALE_TABLES, sqliteOptions } from '../../sample-app/database/database.module.js';
import { databaseType } from './database-type.js';

/** @param database a file for SQLite, or the URL of a PostgreSQL or MariaDB database */
export function databaseOptions(database: string): DataSourceOptions {
  const type = databaseType(database);
  if (type === 'postgres') return { ...SALE_TABLES, type, url: database };
  if (type === 'mariadb') return { ...SALE_TABLES, type, url: database };
  if (type === 'sqlite') return sqliteOptions(database);
  throw new Error('a database is a file, or a URL of PostgreSQL or MariaDB');
}
