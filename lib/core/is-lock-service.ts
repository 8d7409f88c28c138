import { SERVICE_BRAND } from './contract/service-brand.js';
import type { LockService } from './lock-service.js';

/** Returns whether `value` is a `LockService` of this or another copy of the package. */
export function isLockService(value: unknown): value is LockService {
  return typeof value === 'object' && value !== null && SERVICE_BRAND in value;
}
