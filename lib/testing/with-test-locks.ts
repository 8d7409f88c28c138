import { LockConfigurationError, LockService } from '../core/index.js';
import { getLockedMethods } from '../nest/locked/locked-methods.js';
import { TestLockBackend } from './test-lock-backend.js';

let sharedService: LockService | undefined;

/**
 * Gives a lock service to an instance that a test has made by `new`, for the methods with `@Locked`. Returns the
 * instance: `const sales = withTestLocks(new Sales(repository))`. By default all such instances of the process share
 * one service in memory, in real time, which needs no closing.
 * @param locks the service for all backends that the methods name; the test closes it
 * @throws LockConfigurationError when the instance has no locked method
 */
export function withTestLocks<T extends object>(instance: T, locks?: LockService): T {
  const methods = getLockedMethods(instance);
  if (methods.length === 0) {
    const message = `${instance.constructor.name} has no method with @Locked. A mock of a class has none either`;
    throw new LockConfigurationError(message, 'instance');
  }
  const service = locks ?? (sharedService ??= new LockService(new TestLockBackend()));
  for (const { serviceProperty } of methods) Reflect.set(instance, serviceProperty, service);
  return instance;
}
