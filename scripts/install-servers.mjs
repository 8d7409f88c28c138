/** Makes sure that the servers which the tests start are on this machine. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { argv, env, getuid, platform } from 'node:process';
import { fileURLToPath } from 'node:url';

import { findMysql } from './mysql.mjs';

/** One line per server: its Debian package, how to see that it is there, where to get it elsewhere. */
const servers = [
  {
    debian: 'redis-server',
    present: () => onPath('redis-server'),
    elsewhere: 'https://redis.io/docs/latest/operate/oss_and_stack/install/',
  },
  {
    debian: 'memcached',
    present: () => onPath('memcached'),
    elsewhere: 'https://docs.memcached.org/serverguide/',
  },
  {
    debian: 'postgresql',
    present: () => onPath('postgres') || existsSync('/usr/lib/postgresql'),
    elsewhere: 'https://www.postgresql.org/download/',
  },
  {
    debian: 'pgbouncer',
    present: () => onPath('pgbouncer') || existsSync('/usr/sbin/pgbouncer'),
    elsewhere: 'https://www.pgbouncer.org/install.html',
  },
  {
    debian: 'mariadb-server',
    present: () => onPath('mariadbd') && onPath('mariadb-install-db'),
    elsewhere: 'https://mariadb.org/download/',
  },
  {
    debian: 'zookeeper',
    present: () => onPath('java') && existsSync('/usr/share/java/zookeeper.jar'),
    elsewhere: 'https://zookeeper.apache.org/releases.html',
  },
  {
    debian: 'etcd-server',
    present: () => onPath('etcd'),
    elsewhere: 'https://etcd.io/docs/latest/install/',
  },
  {
    debian: 'etcd-client',
    present: () => onPath('etcdctl'),
    elsewhere: 'https://etcd.io/docs/latest/install/',
  },
  {
    debian: 'openssl',
    present: () => onPath('openssl'),
    elsewhere: 'https://openssl-library.org/source/',
  },
  {
    debian: 'faketime',
    present: () => onPath('faketime'),
    elsewhere: 'https://github.com/wolfcw/libfaketime',
  },
  {
    debian: 'chromium',
    present: () => onPath('chromium'),
    elsewhere: 'https://www.chromium.org/getting-involved/download-chromium/',
  },
];

const NEWER = join(import.meta.dirname, '../.newer-servers');
const newerServers = ['redis', 'memcached', 'etcd', 'postgresql', 'mariadb', 'mysql', 'zookeeper'];

/** Unpacks MySQL, which Debian 12 lacks, where it may. Without one the tests leave it out. */
export function installMysql() {
  if (findMysql() === '') unpack(['mysql']);
  if (findMysql() === '') console.error('Left out: MySQL. Debian: scripts/newer-servers.sh; macOS: brew install mysql');
}

/** Unpacks the newest servers, and has the tests start those. Returns whether they are there. */
export function useNewerServers() {
  const isThere = (server) => existsSync(join(NEWER, server));
  unpack(newerServers.filter((server) => !isThere(server)));
  const absent = newerServers.filter((server) => !isThere(server));
  if (absent.length > 0) {
    console.error(
      `--newer unpacks servers from the package source of a Debian, as root. It could not get ${absent.join(', ')}. ` +
        'Elsewhere put newer servers on the PATH, and leave --newer out',
    );
    return false;
  }
  env.LOCK_NEWER_SERVERS = NEWER;
  env.PATH = `${join(NEWER, 'bin')}${delimiter}${env.PATH}`;
  return true;
}

function unpack(names) {
  if (names.length > 0 && mayInstall()) run(join(import.meta.dirname, 'newer-servers.sh'), NEWER, ...names);
}

/** Installs what is missing where it may. Returns whether the tests can go on; says what is missing if not all is there. */
export function installServers() {
  if (missing().length === 0) return true;
  if (mayInstall()) {
    run('apt-get', 'update');
    run('apt-get', 'install', '--yes', '--no-install-recommends', ...missing().map(({ debian }) => debian));
  }
  for (const { debian, elsewhere } of missing()) {
    console.error(`Missing server: ${debian}. Debian/Ubuntu: sudo apt-get install ${debian}; elsewhere: ${elsewhere}`);
  }
  return missing().length === 0 || env.CI !== 'true';
}

function missing() {
  return servers.filter(({ present }) => !present());
}

function mayInstall() {
  return platform === 'linux' && getuid?.() === 0 && existsSync('/etc/debian_version') && onPath('apt-get');
}

function run(command, ...args) {
  spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

function onPath(command) {
  return (env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

if (argv[1] === fileURLToPath(import.meta.url)) process.exitCode = installServers() ? 0 : 1;
