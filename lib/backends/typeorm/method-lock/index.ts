export { addLockColumns } from './add-lock-columns.js';
export { checkMethodLockTable } from './check-method-lock-table.js';
export { methodLockDialectOf } from './databases.js';
export { methodLockStatements } from './method-lock-statements.js';
export { type MethodLockColumns, type MethodLockTable, methodLockTable } from './method-lock-table.js';
