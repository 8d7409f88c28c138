export { rowBackend, type RowBackend, type RowBackendOptions } from './row-backend.js';
export { type RowLease } from './row-lease.js';
export { rowManager } from './row-manager.js';
