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
  // In its directory, so that nothing stays elsewhere when it is killed.
  dynamic_shared_memory_type: 'mmap',
};

/** With the superuser `postgres`, who needs no password. */
export const postgres = {
  name: 'PostgreSQL',
  account: ACCOUNT,
  initialise: (data) => {
    const how = ['--username=postgres', '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C.UTF-8'];
    return ACCOUNT.command(binary('initdb'), ...how, '--wal-segsize=1', `--pgdata=${data}`);
  },
  serve: (directory, port) => {
    const settings = Object.entries({ ...SETTINGS, port, unix_socket_directories: directory });
    const flags = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return ACCOUNT.command(binary('postgres'), '-D', join(directory, 'data'), ...flags);
  },
  ready: 'ready to accept connections',
  // Unlike SIGKILL, it leaves no shared memory behind.
  stopSignal: 'SIGQUIT',
  address: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  install: 'Debian: apt-get install postgresql, macOS: brew install postgresql',
} satisfies ServerRecipe;

/** Debian keeps each version's programs in a directory of its own, outside of the path. */
function binary(name: string): string {
  const versions = join(systemRoot('postgresql'), 'usr/lib/postgresql');
  const [newest] = existsSync(versions) ? readdirSync(versions).toSorted((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? name : join(versions, newest, 'bin', name);
}
