/** A health indicator for `@nestjs/terminus`. @module nestjs-distributed-lock/terminus */
export { type LockHealthDetails, LockHealthIndicator } from './lock-health.indicator.js';
export { LockHealthModule } from './lock-health.module.js';
