/** For the tests of applications: virtual time, a backend that fails on request, and the module with both. */
export { ManualClock } from './manual-clock.js';
export { TestLockBackend } from './test-lock-backend.js';
