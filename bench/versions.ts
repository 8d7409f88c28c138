import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { cpus, type } from 'node:os';
import { type BackendName, competitionOf } from './places.js';

/** What says the version of a server, and where in its answer it stands. */
const SERVERS: Readonly<
  Record<BackendName, { readonly name: string; readonly command: readonly [string, ...string[]] }>
> = {
  redis: { name: 'Redis', command: ['redis-server', '--version'] },
  redlock: { name: 'Redis', command: ['redis-server', '--version'] },
  memcached: { name: 'memcached', command: ['memcached', '--version'] },
  zookeeper: { name: 'ZooKeeper', command: ['dpkg-query', '-W', 'zookeeper'] },
  etcd: { name: 'etcd', command: ['etcd', '--version'] },
  postgres: { name: 'PostgreSQL', command: ['psql', '--version'] },
  mariadb: { name: 'MariaDB', command: ['mariadbd', '--version'] },
  sqlite: { name: 'libsql', command: ['node', '-p', 'require("./node_modules/libsql/package.json").version'] },
};

export function machine(): string {
  const processors = cpus();
  return `${processors.length} × ${processors[0]?.model ?? 'processor'}, ${type()}`;
}

export async function versionsOf(backend: BackendName): Promise<Record<string, string>> {
  const packages = competitionOf(backend).others.flatMap(({ packageName }) => packageName ?? []);
  const installed = await Promise.all(packages.map(async (name) => [name, await versionOfPackage(name)] as const));
  const { name, command } = SERVERS[backend];
  return { node: process.version, [name]: versionOfServer(command), ...Object.fromEntries(installed) };
}

async function versionOfPackage(name: string): Promise<string> {
  const text = await readFile(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function versionOfServer([command, ...args]: readonly [string, ...string[]]): string {
  const output = execFileSync(command, args, { encoding: 'utf8', cwd: new URL('../', import.meta.url) });
  return /\d+(?:\.\d+)+/u.exec(output)?.[0] ?? 'unknown';
}
