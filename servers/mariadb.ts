import { join } from 'node:path';
import { Account } from './account.js';
import { isUnpacked, systemRoot } from './newer.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('mysql');
const LOG_FILE_SIZE_FLAG = '--innodb-log-file-size=4M';

const FLAGS = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--skip-log-bin',
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-flush-method=nosync',
  '--innodb-buffer-pool-size=16M',
  '--performance-schema=OFF',
  '--max-connections=300',
  LOG_FILE_SIZE_FLAG,
];

/** Recipe of MariaDB with an empty database `test` and a user `root` without a password. */
export const mariadb = {
  name: 'MariaDB',
  account: ACCOUNT,
  initialise: (data) => {
    const baseDirectory = isUnpacked() ? [`--basedir=${join(systemRoot('mariadb'), 'usr')}`] : [];
    const options = ['--no-defaults', ...baseDirectory, '--auth-root-authentication-method=normal', LOG_FILE_SIZE_FLAG];
    return ACCOUNT.command('mariadb-install-db', ...options, `--datadir=${data}`);
  },
  serve: (directory, port) => {
    // Each server has its own tmpdir: a server that starts deletes all temporary tables there, also those of others.
    const data = join(directory, 'data');
    const locations = [
      `--datadir=${data}`,
      `--tmpdir=${data}`,
      `--port=${port}`,
      `--socket=${join(directory, 'socket')}`,
    ];
    return ACCOUNT.command('mariadbd', '--no-defaults', ...locations, ...FLAGS);
  },
  ready: 'ready for connections',
  stopSignal: 'SIGKILL',
  address: (port) => `mysql://root@127.0.0.1:${port}/test`,
  install: 'Debian: apt-get install mariadb-server, macOS: brew install mariadb',
} satisfies ServerRecipe;
