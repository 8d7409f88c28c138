export { type LockAcquireResult, type LockStore } from './lock-store.js';
export { BackendLockStore, lockStore } from './backend-lock-store.js';
