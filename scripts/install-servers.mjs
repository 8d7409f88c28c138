/** Installs the servers that the tests start. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { argv, env, getuid, platform } from 'node:process';
import { fileURLToPath } from 'node:url';

import { findMysql } from './mysql.mjs';

/** Servers: Debian package, check whether the server is installed, and page about other systems. */
const servers = [
  {
    debian: 'redis-server',
    isInstalled: () => isOnPath('redis-server'),
    elsewhere: 'https://redis.io/docs/latest/operate/oss_and_stack/install/',
  },
  {
    debian: 'memcached',
    isInstalled: () => isOnPath('memcached'),
    elsewhere: 'https://docs.memcached.org/serverguide/',
  },
  {
    debian: 'postgresql',
    isInstalled: () => isOnPath('postgres') || existsSync('/usr/lib/postgresql'),
    elsewhere: 'https://www.postgresql.org/download/',
  },
  {
    debian: 'pgbouncer',
    isInstalled: () => isOnPath('pgbouncer') || existsSync('/usr/sbin/pgbouncer'),
    elsewhere: 'https://www.pgbouncer.org/install.html',
  },
  {
    debian: 'mariadb-server',
    isInstalled: () => isOnPath('mariadbd') && isOnPath('mariadb-install-db'),
    elsewhere: 'https://mariadb.org/download/',
  },
  {
    debian: 'zookeeper',
    isInstalled: () => isOnPath('java') && existsSync('/usr/share/java/zookeeper.jar'),
    elsewhere: 'https://zookeeper.apache.org/releases.html',
  },
  {
    debian: 'etcd-server',
    isInstalled: () => isOnPath('etcd'),
    elsewhere: 'https://etcd.io/docs/latest/install/',
  },
  {
    debian: 'etcd-client',
    isInstalled: () => isOnPath('etcdctl'),
    elsewhere: 'https://etcd.io/docs/latest/install/',
  },
  {
    debian: 'openssl',
    isInstalled: () => isOnPath('openssl'),
    elsewhere: 'https://openssl-library.org/source/',
  },
  {
    debian: 'faketime',
    isInstalled: () => isOnPath('faketime'),
    elsewhere: 'https://github.com/wolfcw/libfaketime',
  },
  {
    debian: 'chromium',
    isInstalled: () => isOnPath('chromium'),
    elsewhere: 'https://www.chromium.org/getting-involved/download-chromium/',
  },
];

const UNPACKED_DIRECTORY = join(import.meta.dirname, '../.newer-servers');
const newerServers = ['redis', 'memcached', 'etcd', 'postgresql', 'mariadb', 'mysql', 'zookeeper'];

/** Unpacks MySQL, which Debian 12 lacks, where installing is allowed. The tests skip a missing MySQL. */
export function installMysql() {
  if (findMysql() === '') unpack(['mysql']);
  if (findMysql() === '') console.error('Left out: MySQL. Debian: scripts/newer-servers.sh; macOS: brew install mysql');
}

/** Unpacks the newest servers, and makes the tests start them. Returns whether all are unpacked. */
export function useNewerServers() {
  const isUnpacked = (server) => existsSync(join(UNPACKED_DIRECTORY, server));
  unpack(newerServers.filter((server) => !isUnpacked(server)));
  const absent = newerServers.filter((server) => !isUnpacked(server));
  if (absent.length > 0) {
    console.error(
      `--newer unpacks servers from the package source of a Debian, as root. It could not get ${absent.join(', ')}. ` +
        'Elsewhere put newer servers on the PATH, and leave --newer out',
    );
    return false;
  }
  env.LOCK_NEWER_SERVERS = UNPACKED_DIRECTORY;
  env.PATH = `${join(UNPACKED_DIRECTORY, 'bin')}${delimiter}${env.PATH}`;
  return true;
}

function unpack(names) {
  if (names.length > 0 && canInstall())
    run(join(import.meta.dirname, 'newer-servers.sh'), UNPACKED_DIRECTORY, ...names);
}

/**
 * Installs missing servers where installing is allowed, and prints the ones that stay missing. Returns whether to go
 * on; only CI needs all.
 */
export function installServers() {
  if (findMissing().length === 0) return true;
  if (canInstall()) {
    run('apt-get', 'update');
    run('apt-get', 'install', '--yes', '--no-install-recommends', ...findMissing().map(({ debian }) => debian));
  }
  for (const { debian, elsewhere } of findMissing()) {
    console.error(`Missing server: ${debian}. Debian/Ubuntu: sudo apt-get install ${debian}; elsewhere: ${elsewhere}`);
  }
  return findMissing().length === 0 || env.CI !== 'true';
}

function findMissing() {
  return servers.filter(({ isInstalled }) => !isInstalled());
}

function canInstall() {
  return platform === 'linux' && getuid?.() === 0 && existsSync('/etc/debian_version') && isOnPath('apt-get');
}

function run(command, ...args) {
  spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

function isOnPath(command) {
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
