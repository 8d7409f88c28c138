export { sqlite, type SqliteOptions } from './sqlite.js';
export type { SqliteDriver } from './open-database.js';
export type { ExistingTableColumns } from '../sql/dialect/existing-table-types.js';
export type { LeaseBackendOptions } from '../sql/lease/lease-backend.js';
