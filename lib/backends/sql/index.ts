export { fence, type FenceOptions } from './transactions/fence.js';
export { lockIn, type LockInOptions } from './transactions/lock-in.js';
export type { Fencing } from './transactions/raise-fence.js';
export type { SqlTransaction } from './transactions/sql-transaction.js';
export { fromMysql2, fromPg, fromSqlite } from './transactions/drivers.js';
export { fromDrizzle, fromKnex, fromKysely, fromPrisma, fromSequelize, fromTypeOrm } from './transactions/orms.js';
export { tableStatements, type TableNames } from './tables/table-statements.js';
