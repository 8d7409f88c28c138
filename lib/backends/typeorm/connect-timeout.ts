import type { DataSourceOptions } from 'typeorm';

const MIN_DEFAULT_TIMEOUT_MS = 2_000;

/** Names of the time-outs for connections, of TypeORM and in the `extra` of pg and mysql2. */
const TIMEOUT_NAMES = ['connectTimeoutMS', 'connectTimeout', 'connectionTimeoutMillis'];

/**
 * Returns the longest time-out for connections that the data source sets, and at least `MIN_DEFAULT_TIMEOUT_MS`. A
 * serverless database may need a long one to start.
 */
export function getDefaultConnectTimeoutMs(options: DataSourceOptions): number {
  const sources: object[] = [options, Object(Reflect.get(options, 'extra'))];
  const configuredValues = sources.flatMap((source) => TIMEOUT_NAMES.map((name): unknown => Reflect.get(source, name)));
  return Math.max(
    MIN_DEFAULT_TIMEOUT_MS,
    ...configuredValues.filter((ms) => typeof ms === 'number' && Number.isFinite(ms)).map(Number),
  );
}
