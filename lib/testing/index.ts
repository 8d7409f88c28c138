/** Tools for the tests of applications: virtual time, a backend that fails on request, and the module with both. */
export { getTestLockBackendToken, LockTestingModule, type LockTestingOptions } from './lock-testing.module.js';
export { ManualClock } from './manual-clock.js';
export { TestLockBackend } from './test-lock-backend.js';
export { withTestLocks } from './with-test-locks.js';
