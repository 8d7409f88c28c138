import { statSync } from 'node:fs';
import { DatabaseError } from '../connections/database-error.js';
import { readRows } from '../connections/query.js';

interface Database {
  prepare(sql: string): { all(): readonly unknown[] };
}

/** Files of an open database, by device and inode. `wal` is `undefined` until the file is there. */
interface OpenFiles {
  readonly path: string;
  readonly main: string | undefined;
  wal: string | undefined;
}

const filesByDatabase = new WeakMap<Database, OpenFiles>();

/**
 * Compares the files of an open database with those that have their names now. After a restored backup, or a reset by
 * another tool, this process would go on in the former file. Another process would give the same locks in the new one.
 * @throws DatabaseError when the file or its `-wal` was deleted or replaced
 */
export function assertSameFiles(database: Database): void {
  const files = filesByDatabase.get(database) ?? recordFiles(database);
  if (files.path === '') return;
  const wal = identify(`${files.path}-wal`);
  if (identify(files.path) !== files.main || (files.wal !== undefined && wal !== files.wal))
    throw new DatabaseError('the SQLite file was deleted or replaced while it was open', undefined);
  files.wal ??= wal;
}

function recordFiles(database: Database): OpenFiles {
  const [main] = readRows(database.prepare('pragma database_list').all());
  const path = typeof main?.['file'] === 'string' ? main['file'] : '';
  const files: OpenFiles = { path, main: identify(path), wal: undefined };
  filesByDatabase.set(database, files);
  return files;
}

function identify(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}
