import { Inject } from '@nestjs/common';
import { LockConfigurationError, type WantedKey } from '../../core/index.js';
import { assertLegacyDecorator, isMethod, getMethodLabel } from '../../decorators/declaration.js';
import { onLockedStep } from '../../decorators/locked-step.js';
import { wrapMethod } from '../../decorators/wrapped-method.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';
import type { KeyFunction, KeySource } from '../keys/locked-keys.js';
import { LockedMethod } from './locked-method.js';
import { addLockedMethod, getLockedMethods } from './locked-methods.js';
import type { LockedDecorator, LockedOptions, OnBusy } from './locked-types.js';
import { setDeclaration } from '../method-metadata.js';
import { MethodStep } from './method-step.js';

type UncheckedDecorator = (target: object, name: string | symbol, descriptor?: PropertyDescriptor) => void;

/**
 * Runs the method under a lock. The lock is held until the promise, the Observable or the stream that the method
 * returns has ended.
 *
 * `key` is a template such as `lock_sale_:id`, an array of templates, or a function of the method's own arguments.
 * Several keys are taken together or not at all; a key that is an object has a claim of its own. The value of a
 * placeholder is the first of these that exists:
 * - a parameter with `@LockKey('id')`
 * - a parameter with `@Param('id')` or another decorator of Nest that names it
 * - an argument, `:id`, or its property, `:dto.sku`
 * - a property of the only argument that is an object
 * - a part of the request, `:params.id`, `:query.x`, `:body.y`, `:user.id`, or of the message, `:data.id`
 *
 * Names of arguments need two letters, and four in minified builds.
 *
 * Put `@Locked` above `@Transactional()`, so that the commit comes before the release.
 * @throws LockConfigurationError at decoration: an option or template that can never work; a static method; two
 * `@Locked`
 */
export function Locked<Args extends unknown[], Busy extends OnBusy>(
  key: KeyFunction<Args>,
  options?: LockedOptions<Busy>,
): LockedDecorator<Args, Busy>;
export function Locked<Busy extends OnBusy>(
  key: string | readonly [WantedKey, ...WantedKey[]],
  options?: LockedOptions<Busy>,
): LockedDecorator<[], Busy>;
export function Locked(key: KeySource, options: LockedOptions = {}): UncheckedDecorator {
  return (target: object, name: string | symbol, descriptor?: PropertyDescriptor) => {
    assertLegacyDecorator('@Locked', name);
    const { backend = DEFAULT_BACKEND } = options;
    const declaration = { target, name };
    const label = getMethodLabel(declaration);
    const method: unknown = descriptor?.value;
    if (typeof target === 'function' || !descriptor || !isMethod(method)) {
      throw new LockConfigurationError(`@Locked belongs on a method of instances, which ${label} is not`, 'method');
    }
    const existingMethods = getLockedMethods(target);
    if (existingMethods.some((other) => other.declaration.target === target && other.declaration.name === name)) {
      throw new LockConfigurationError(`${label} has two @Locked; give one of them both keys, in an array`, 'key');
    }
    const methodOfSameBackend = existingMethods.find((other) => other.backend === backend);
    const serviceProperty = methodOfSameBackend?.serviceProperty ?? Symbol(createServiceAdvice(label, backend));
    const lockedMethod = new LockedMethod(declaration, method, key, options, serviceProperty);
    addLockedMethod(lockedMethod);
    Inject(getLockServiceToken(backend))(target, serviceProperty);
    onLockedStep(declaration, (step) => {
      lockedMethod.step = new MethodStep(step, declaration, method);
      Inject(step.needs)(target, lockedMethod.step.providerProperty);
    });
    descriptor.value = wrapMethod(method, lockedMethod.wrapper);
    setDeclaration(declaration, lockedMethod.wrapper);
  };
}

/** Returns the property's description, which Nest prints when it cannot inject the service. */
function createServiceAdvice(label: string, backend: string): string {
  const remedy =
    backend === DEFAULT_BACKEND
      ? 'import DistributedLockModule.forRoot(backend) in the root module'
      : `no backend is called ${backend}, add it: DistributedLockModule.forRoot({ backends: { ${backend}: … } })`;
  return `LockService of @Locked ${label}: ${remedy}`;
}
