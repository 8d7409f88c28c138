export { postgres, type PostgresOptions, type PostgresServer } from './postgres.js';
export type { Pglite } from './pglite.js';
export { rowClient } from './row-client.js';
export type { ExistingTableColumns } from '../sql/dialect/existing-table-types.js';
export type { LeaseBackendOptions } from '../sql/lease/lease-backend.js';
export type { RowBackendOptions } from '../sql/row/row-backend.js';
export type { SessionBackendOptions } from '../sql/session/session-backend.js';
