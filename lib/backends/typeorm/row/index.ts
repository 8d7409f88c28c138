export { rowBackend, type RowBackendOptions } from './row-backend.js';
export { rowManager } from './row-manager.js';
