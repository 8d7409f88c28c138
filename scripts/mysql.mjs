/** Finds the server of MySQL. Debian 12 has none, and its `mysqld` is MariaDB's. */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';

const UNPACKED = join(import.meta.dirname, '../.newer-servers/bin/mysqld');

/** Returns the path of the program. It is empty where there is none, and the tests skip MySQL. */
export function findMysql() {
  if (env.LOCK_MYSQLD !== undefined) return env.LOCK_MYSQLD;
  // MySQL looks for its files beside the real path of its program.
  if (existsSync(UNPACKED)) return realpathSync(UNPACKED);
  const { stdout } = spawnSync('mysqld', ['--version'], { encoding: 'utf8' });
  return stdout?.includes('MySQL') && !stdout.includes('MariaDB') ? 'mysqld' : '';
}
