import { join } from 'node:path';
import { Account } from './account.js';
import { isUnpacked, systemRoot } from './newer.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('mysql');
const LOG_FILE_SIZE = '--innodb-log-file-size=4M';

const FLAGS = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--skip-log-bin',
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-flush-method=nosync',
  '--innodb-buffer-pool-size=16M',
  '--performance-schema=OFF',
  '--max-connections=300',
  LOG_FILE_SIZE,
];

/** With the user `root`, who needs no password, and an empty database `test`. */
export const mariadb = {
  name: 'MariaDB',
  account: ACCOUNT,
  initialise: (data) => {
    const from = isUnpacked() ? [`--basedir=${join(systemRoot('mariadb'), 'usr')}`] : [];
    const how = ['--no-defaults', ...from, '--auth-root-authentication-method=normal', LOG_FILE_SIZE];
    return ACCOUNT.command('mariadb-install-db', ...how, `--datadir=${data}`);
  },
  serve: (directory, port) => {
    // Servers with the same tmpdir crash each other: one that starts deletes all temporary tables in there.
    const data = join(directory, 'data');
    const where = [`--datadir=${data}`, `--tmpdir=${data}`, `--port=${port}`, `--socket=${join(directory, 'socket')}`];
    return ACCOUNT.command('mariadbd', '--no-defaults', ...where, ...FLAGS);
  },
  ready: 'ready for connections',
  stopSignal: 'SIGKILL',
  address: (port) => `mysql://root@127.0.0.1:${port}/test`,
  install: 'Debian: apt-get install mariadb-server, macOS: brew install mariadb',
} satisfies ServerRecipe;
