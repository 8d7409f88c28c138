import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Account } from './account.js';
import { systemRoot } from './newer.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('postgres');

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  // The shared memory is in the directory of the server: a killed server leaves nothing elsewhere.
  dynamic_shared_memory_type: 'mmap',
};

/** Recipe of PostgreSQL with a superuser `postgres` without a password. */
export const postgres = {
  name: 'PostgreSQL',
  account: ACCOUNT,
  initialise: (data) => {
    const options = ['--username=postgres', '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C.UTF-8'];
    return ACCOUNT.command(programPath('initdb'), ...options, '--wal-segsize=1', `--pgdata=${data}`);
  },
  serve: (directory, port) => {
    const settings = Object.entries({ ...SETTINGS, port, unix_socket_directories: directory });
    const flags = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return ACCOUNT.command(programPath('postgres'), '-D', join(directory, 'data'), ...flags);
  },
  ready: 'ready to accept connections',
  // SIGKILL would leave shared memory behind.
  stopSignal: 'SIGQUIT',
  address: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  install: 'Debian: apt-get install postgresql, macOS: brew install postgresql',
} satisfies ServerRecipe;

/** Returns the path of a program. Debian has one directory for each version, outside of the PATH. */
function programPath(name: string): string {
  const versions = join(systemRoot('postgresql'), 'usr/lib/postgresql');
  const [newest] = existsSync(versions) ? readdirSync(versions).toSorted((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? name : join(versions, newest, 'bin', name);
}
