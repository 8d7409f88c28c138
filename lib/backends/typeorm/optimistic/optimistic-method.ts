import { LockConfigurationError } from '../../../core/index.js';
import { assertLegacyDecorator, isMethod } from '../../../decorators/declaration.js';
import { wrapMethod } from '../../../decorators/wrapped-method.js';
import { type OptimisticOptions, repeatOnConflict, resolveOptimisticOptions } from './optimistic-retries.js';
import type { PromiseMethodDecorator } from './promise-method.js';

/**
 * Runs the method again, with the same arguments, when it rejects with a conflict. A conflict is that of
 * `updateVersioned`, or a deadlock or serialization failure of the database. The method opens its transaction itself,
 * in each run. Inside of a transaction of the caller, every run would read the same old rows. Put the decorator below
 * `@Locked()`, and above `@Transactional()`.
 *
 * A plain method decorator, for any class: it needs no Nest. Metadata of decorators written below it is kept.
 * @throws LockConfigurationError at decoration; the method rejects with OptimisticConflictError after `retries`
 *   repetitions
 */
export function Optimistic(options: OptimisticOptions = {}): PromiseMethodDecorator {
  const resolvedOptions = resolveOptimisticOptions(options);
  return (_target: object, name: string | symbol, descriptor?: PropertyDescriptor) => {
    assertLegacyDecorator('@Optimistic', name);
    const method: unknown = descriptor?.value;
    if (!descriptor || !isMethod(method)) {
      throw new LockConfigurationError(`@Optimistic belongs on a method, which ${String(name)} is not`, 'method');
    }
    descriptor.value = wrapMethod(method, function (this: unknown, ...args: never[]) {
      return repeatOnConflict(async () => method.apply(this, args), resolvedOptions);
    });
  };
}
