import { join } from 'node:path';
import { env } from 'node:process';
import { Account } from './account.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('mysql');

/** Program of the server. On Debian `mysqld` is MariaDB's, and the tests set LOCK_MYSQLD. */
const PROGRAM = env['LOCK_MYSQLD'] || 'mysqld';

const INIT_FILE = join(import.meta.dirname, 'mysql-init.sql');

/** Flags of the storage engine, the same for the creation of the data directory and for the server. */
const STORAGE_FLAGS = ['--innodb-redo-log-capacity=8M', '--innodb-data-file-path=ibdata1:5M:autoextend'];

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
  ...STORAGE_FLAGS,
];

/** Recipe of MySQL with an empty database `test` and a user `root` without a password. */
export const mysql = {
  name: 'MySQL',
  account: ACCOUNT,
  initialise: (data) => {
    const options = ['--no-defaults', '--initialize-insecure', `--init-file=${INIT_FILE}`, ...STORAGE_FLAGS];
    return ACCOUNT.command(PROGRAM, ...options, `--datadir=${data}`);
  },
  serve: (directory, port) => {
    const data = join(directory, 'data');
    const locations = [
      `--datadir=${data}`,
      `--tmpdir=${data}`,
      `--port=${port}`,
      `--socket=${join(directory, 'socket')}`,
    ];
    return ACCOUNT.command(PROGRAM, '--no-defaults', ...locations, ...FLAGS);
  },
  ready: 'ready for connections. Version',
  stopSignal: 'SIGKILL',
  address: (port) => `mysql://root@127.0.0.1:${port}/test`,
  install: 'Debian: scripts/newer-servers.sh, macOS: brew install mysql',
} satisfies ServerRecipe;
