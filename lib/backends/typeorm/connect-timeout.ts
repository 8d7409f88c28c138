import type { DataSourceOptions } from 'typeorm';

const DEFAULT_MS = 2_000;

/** Names of the time-outs for connections, of TypeORM and in the `extra` of pg and mysql2. */
const NAMES = ['connectTimeoutMS', 'connectTimeout', 'connectionTimeoutMillis'];

/**
 * Returns the default of `connectTimeoutMs`: what the data source has, if that is longer. A database that is started by
 * the first connection, as serverless ones are, takes seconds.
 */
export function defaultConnectTimeoutMs(options: DataSourceOptions): number {
  const sources: object[] = [options, Object(Reflect.get(options, 'extra'))];
  const theirs = sources.flatMap((source) => NAMES.map((name): unknown => Reflect.get(source, name)));
  return Math.max(DEFAULT_MS, ...theirs.filter((ms) => typeof ms === 'number' && Number.isFinite(ms)).map(Number));
}
