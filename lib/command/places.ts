import { type BackendFactory, LockConfigurationError } from '../core/index.js';
import type { SqlDatabase } from '../backends/sql/connections/sql-database.js';
import { beginningOf, type CommandOptions, urlOf } from './report.js';

type SqlName = 'postgres' | 'mysql' | 'sqlite';

const DATABASES: Readonly<Record<string, SqlName>> = {
  postgres: 'postgres',
  postgresql: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
  sqlite: 'sqlite',
};

/** Returns the database of a URL; `undefined` for another kind of server. */
export function sqlNameOf(options: CommandOptions): SqlName | undefined {
  const scheme = schemeOf(urlOf(options));
  return Object.hasOwn(DATABASES, scheme) ? DATABASES[scheme] : undefined;
}

/** @throws LockConfigurationError for a URL of something else */
export async function openDatabase(options: CommandOptions): Promise<SqlDatabase> {
  const url = urlOf(options);
  const name = sqlNameOf(options);
  if (name === 'postgres') return (await import('../backends/postgres/postgres.js')).postgresDatabase({ url });
  if (name === 'mysql') return (await import('../backends/mysql/mysql.js')).mysqlDatabase({ url });
  if (name === 'sqlite') return (await import('../backends/sqlite/sqlite.js')).sqliteDatabase({ file: fileIn(url) });
  throw new LockConfigurationError(
    `only SQL has tables; --url begins with ${beginningOf(url)}, which is no SQL database`,
    'url',
  );
}

/** Makes the backend of a URL, and loads its client alone. @throws LockConfigurationError for an unknown kind of URL */
export async function openBackend(options: CommandOptions): Promise<BackendFactory> {
  const url = urlOf(options);
  const table = options.table === undefined ? {} : { tableName: options.table };
  switch (schemeOf(url)) {
    case 'redis':
    case 'rediss':
      return (await import('../backends/redis/index.js')).redis({ url });
    case 'postgres':
    case 'postgresql':
      return (await import('../backends/postgres/index.js')).postgres({ url, ...table });
    case 'mysql':
    case 'mariadb':
      return (await import('../backends/mysql/index.js')).mysql({ url, ...table });
    case 'sqlite':
      return (await import('../backends/sqlite/index.js')).sqlite({ file: fileIn(url), ...table });
    case 'etcd':
      return (await import('../backends/etcd/index.js')).etcd({
        endpoints: hostsIn(url).map((host) => `http://${host}`),
      });
    case 'zookeeper':
      return (await import('../backends/zookeeper/index.js')).zookeeper({ connectString: hostsIn(url).join(',') });
    case 'memcached':
      return (await import('../backends/memcached/index.js')).memcached({ servers: hostsIn(url) });
    default: {
      const known = 'redis, postgres, mysql, mariadb, sqlite, etcd, zookeeper, memcached';
      throw new LockConfigurationError(`--url begins with one of ${known}; it began with ${beginningOf(url)}`, 'url');
    }
  }
}

function schemeOf(url: string): string {
  return /^([a-z]+):/u.exec(url)?.[1] ?? '';
}

function fileIn(url: string): string {
  return url.replace(/^sqlite:(\/\/)?/u, '');
}

/** @throws LockConfigurationError for a URL with a user, which these servers do not know as such */
function hostsIn(url: string): string[] {
  if (url.includes('@')) {
    throw new LockConfigurationError(
      `--url with ${beginningOf(url)} has hosts only, without a user and a password`,
      'url',
    );
  }
  return url.replace(/^[a-z]+:\/\//u, '').split(',');
}
