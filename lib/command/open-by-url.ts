import { type BackendFactory, LockConfigurationError } from '../core/index.js';
import type { SqlDatabase } from '../backends/sql/connections/sql-database.js';
import { describeUrlScheme, type CommandOptions, getUrl } from './report.js';

type SqlDatabaseName = 'postgres' | 'mysql' | 'sqlite';

const DATABASES_BY_SCHEME: Readonly<Record<string, SqlDatabaseName>> = {
  postgres: 'postgres',
  postgresql: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
  sqlite: 'sqlite',
};

export function getSqlDatabaseName(options: CommandOptions): SqlDatabaseName | undefined {
  const scheme = getScheme(getUrl(options));
  return Object.hasOwn(DATABASES_BY_SCHEME, scheme) ? DATABASES_BY_SCHEME[scheme] : undefined;
}

/** @throws LockConfigurationError for a URL that names no SQL database */
export async function loadSqlDatabase(options: CommandOptions): Promise<SqlDatabase> {
  const url = getUrl(options);
  const name = getSqlDatabaseName(options);
  if (name === 'postgres') return (await import('../backends/postgres/postgres.js')).postgresDatabase({ url });
  if (name === 'mysql') return (await import('../backends/mysql/mysql.js')).mysqlDatabase({ url });
  if (name === 'sqlite')
    return (await import('../backends/sqlite/sqlite.js')).sqliteDatabase({ file: getSqliteFile(url) });
  throw new LockConfigurationError(
    `only SQL has tables; --url begins with ${describeUrlScheme(url)}, which is no SQL database`,
    'url',
  );
}

/** Imports only the client library of the URL's backend. @throws LockConfigurationError for an unknown kind of URL */
export async function loadBackendFactory(options: CommandOptions): Promise<BackendFactory> {
  const url = getUrl(options);
  const tableOption = options.table === undefined ? {} : { tableName: options.table };
  switch (getScheme(url)) {
    case 'redis':
    case 'rediss':
      return (await import('../backends/redis/index.js')).redis({ url });
    case 'postgres':
    case 'postgresql':
      return (await import('../backends/postgres/index.js')).postgres({ url, ...tableOption });
    case 'mysql':
    case 'mariadb':
      return (await import('../backends/mysql/index.js')).mysql({ url, ...tableOption });
    case 'sqlite':
      return (await import('../backends/sqlite/index.js')).sqlite({ file: getSqliteFile(url), ...tableOption });
    case 'etcd':
      return (await import('../backends/etcd/index.js')).etcd({
        endpoints: getHosts(url).map((host) => `http://${host}`),
      });
    case 'zookeeper':
      return (await import('../backends/zookeeper/index.js')).zookeeper({ connectString: getHosts(url).join(',') });
    case 'memcached':
      return (await import('../backends/memcached/index.js')).memcached({ servers: getHosts(url) });
    default: {
      const knownSchemes = 'redis, postgres, mysql, mariadb, sqlite, etcd, zookeeper, memcached';
      throw new LockConfigurationError(
        `--url begins with one of ${knownSchemes}; it began with ${describeUrlScheme(url)}`,
        'url',
      );
    }
  }
}

function getScheme(url: string): string {
  return /^([a-z]+):/u.exec(url)?.[1] ?? '';
}

function getSqliteFile(url: string): string {
  return url.replace(/^sqlite:(\/\/)?/u, '');
}

/** @throws LockConfigurationError for a URL with a user, because only hosts are read from the URL */
function getHosts(url: string): string[] {
  if (url.includes('@')) {
    throw new LockConfigurationError(
      `--url with ${describeUrlScheme(url)} has hosts only, without a user and a password`,
      'url',
    );
  }
  return url.replace(/^[a-z]+:\/\//u, '').split(',');
}
