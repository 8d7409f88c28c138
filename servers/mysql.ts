import { join } from 'node:path';
import { env } from 'node:process';
import { Account } from './account.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('mysql');

/** Debian has MariaDB's server under the name of MySQL's. */
const PROGRAM = env['LOCK_MYSQLD'] || 'mysqld';

const FIRST_STATEMENTS = join(import.meta.dirname, 'mysql-init.sql');

/** What a data directory is made with. */
const STORAGE = ['--innodb-redo-log-capacity=8M', '--innodb-data-file-path=ibdata1:5M:autoextend'];

const FLAGS = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--skip-log-bin',
  '--secure-file-priv=',
  '--mysqlx=OFF',
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-flush-method=nosync',
  '--innodb-buffer-pool-size=16M',
  '--performance-schema=OFF',
  '--max-connections=300',
  ...STORAGE,
];

/** With the user `root`, who needs no password, and an empty database `test`. */
export const mysql = {
  name: 'MySQL',
  account: ACCOUNT,
  initialise: (data) => {
    const how = ['--no-defaults', '--initialize-insecure', `--init-file=${FIRST_STATEMENTS}`, ...STORAGE];
    return ACCOUNT.command(PROGRAM, ...how, `--datadir=${data}`);
  },
  serve: (directory, port) => {
    const data = join(directory, 'data');
    const where = [`--datadir=${data}`, `--tmpdir=${data}`, `--port=${port}`, `--socket=${join(directory, 'socket')}`];
    return ACCOUNT.command(PROGRAM, '--no-defaults', ...where, ...FLAGS);
  },
  ready: 'ready for connections. Version',
  stopSignal: 'SIGKILL',
  address: (port) => `mysql://root@127.0.0.1:${port}/test`,
  install: 'Debian: scripts/newer-servers.sh, macOS: brew install mysql',
} satisfies ServerRecipe;
