import type { BackendFactory } from '../../core/index.js';
import type { SqlDatabase } from './connections/sql-database.js';
import { createLeaseBackend, type LeaseBackendOptions } from './lease/lease-backend.js';
import { assertOptions } from './options.js';
import { createRowBackend, type RowBackendOptions } from './row/row-backend.js';
import { createSessionBackend, type SessionBackendOptions } from './session/session-backend.js';

export type LeaseStrategy = { strategy?: 'lease' } & LeaseBackendOptions;
export type RowStrategy = { strategy: 'row' } & RowBackendOptions;
export type SessionStrategy = { strategy: 'session' } & SessionBackendOptions;

/** Each strategy describes its own options. All processes must use the same strategy. */
export type StrategyOptions = LeaseStrategy | RowStrategy | SessionStrategy;

/** @throws LockConfigurationError for options that can never work */
export function createSqlBackend(
  database: SqlDatabase,
  options: StrategyOptions,
  connectionOptionNames: readonly string[],
): BackendFactory {
  assertOptions(options.strategy ?? 'lease', options, connectionOptionNames);
  if (options.strategy === 'row') return createRowBackend(database, options);
  if (options.strategy === 'session') return createSessionBackend(database, options);
  return createLeaseBackend(database, options);
}
