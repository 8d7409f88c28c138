import { Inject } from '@nestjs/common';
import { LockConfigurationError, type WantedKey } from '../../core/index.js';
import { assertLegacyDecorator, isMethod, labelOf } from '../../decorators/declaration.js';
import { adoptLockedStep } from '../../decorators/locked-step.js';
import { wrapMethod } from '../../decorators/wrapped-method.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';
import type { KeyFunction, KeySource } from '../keys/locked-keys.js';
import { addLockedMethod, LockedMethod, lockedMethods } from './locked-method.js';
import type { LockedDecorator, LockedOptions, OnBusy } from './locked-types.js';
import { noteDeclaration } from '../method-metadata.js';
import { MethodStep } from './method-step.js';

/** The overloads below admit less. */
type AnyDecorator = (target: object, name: string | symbol, descriptor?: PropertyDescriptor) => void;

/**
 * Runs the method under a lock, which lasts as long as what the method returns: a promise, an Observable, a stream.
 *
 * `key` is a template such as `lock_sale_:id`, several of them (all or none are taken, each with a claim of its own where
 * it is an object), or a function of the method's own arguments. A placeholder is, in this order: `@LockKey('id')`; a named parameter, `@Param('id')`; an argument,
 * `:dto.sku`; a property of the only argument that is an object; the request, `:params.id`, `:query.x`, `:body.y`,
 * `:user.id`, or the message, `:data.id`. Names of one letter, of three in minified builds, do not count.
 *
 * Put it above `@Transactional()`, so that the commit comes before the release.
 * @throws LockConfigurationError at decoration: an option or template that can never work; a static method; two locks
 */
export function Locked<Args extends unknown[], Busy extends OnBusy>(
  key: KeyFunction<Args>,
  options?: LockedOptions<Busy>,
): LockedDecorator<Args, Busy>;
export function Locked<Busy extends OnBusy>(
  key: string | readonly [WantedKey, ...WantedKey[]],
  options?: LockedOptions<Busy>,
): LockedDecorator<[], Busy>;
export function Locked(key: KeySource, options: LockedOptions = {}): AnyDecorator {
  return (target: object, name: string | symbol, descriptor?: PropertyDescriptor) => {
    assertLegacyDecorator('@Locked', name);
    const { backend = DEFAULT_BACKEND } = options;
    const declaration = { target, name };
    const label = labelOf(declaration);
    const method: unknown = descriptor?.value;
    if (typeof target === 'function' || !descriptor || !isMethod(method)) {
      throw new LockConfigurationError(`@Locked belongs on a method of instances, which ${label} is not`, 'method');
    }
    const others = lockedMethods(target);
    if (others.some((other) => other.declaration.target === target && other.declaration.name === name)) {
      throw new LockConfigurationError(`${label} has two @Locked; give one of them both keys, in an array`, 'key');
    }
    const property = others.find((other) => other.backend === backend)?.property ?? Symbol(advice(label, backend));
    const locked = new LockedMethod(declaration, method, key, options, property);
    addLockedMethod(locked);
    Inject(getLockServiceToken(backend))(target, property);
    adoptLockedStep(declaration, (step) => {
      locked.step = new MethodStep(step, declaration, method);
      Inject(step.needs)(target, locked.step.property);
    });
    descriptor.value = wrapMethod(method, locked.wrapper);
    noteDeclaration(declaration, locked.wrapper);
  };
}

/** Nest prints it when it cannot inject the service. */
function advice(label: string, backend: string): string {
  const missing =
    backend === DEFAULT_BACKEND
      ? 'import DistributedLockModule.forRoot(backend) in the root module'
      : `no backend is called ${backend}, add it: DistributedLockModule.forRoot({ backends: { ${backend}: … } })`;
  return `LockService of @Locked ${label}: ${missing}`;
}
