/** Where MySQL's server is: Debian 12 has none, and its `mysqld` is MariaDB's. */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';

const UNPACKED = join(import.meta.dirname, '../.newer-servers/bin/mysqld');

/** The program, or an empty text where there is none: then the tests leave MySQL out. */
export function findMysql() {
  if (env.LOCK_MYSQLD !== undefined) return env.LOCK_MYSQLD;
  // It finds its own files beside the place where it really is.
  if (existsSync(UNPACKED)) return realpathSync(UNPACKED);
  const { stdout } = spawnSync('mysqld', ['--version'], { encoding: 'utf8' });
  return stdout?.includes('MySQL') && !stdout.includes('MariaDB') ? 'mysqld' : '';
}
