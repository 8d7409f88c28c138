import { LockConfigurationError, LockService } from '../core/index.js';
import { lockedMethods } from '../nest/locked/locked-methods.js';
import { TestLockBackend } from './test-lock-backend.js';

/** One for all instances of a process: they exclude each other. */
let shared: LockService | undefined;

/**
 * Gives an instance that a test has made by `new` the locks of its methods with `@Locked`, and returns it:
 * `const sales = withTestLocks(new Sales(repository))`. Without `locks` all such instances of the process share locks in
 * memory, in real time. Nothing has to be closed.
 * @param locks for every backend that the methods name; the test closes it
 * @throws LockConfigurationError when the instance has no locked method
 */
export function withTestLocks<T extends object>(instance: T, locks?: LockService): T {
  const methods = lockedMethods(instance);
  if (methods.length === 0) {
    const why = `${instance.constructor.name} has no method with @Locked. A mock of a class has none either`;
    throw new LockConfigurationError(why, 'instance');
  }
  const service = locks ?? (shared ??= new LockService(new TestLockBackend()));
  for (const { serviceProperty } of methods) Reflect.set(instance, serviceProperty, service);
  return instance;
}
