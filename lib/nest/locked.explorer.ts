import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, ModuleRef } from '@nestjs/core';
import { LockConfigurationError, type LockService } from '../core/index.js';
import { assertStepsLocked } from '../decorators/locked-step.js';
import { getLockServiceToken } from './inject-lock-service.decorator.js';
import { LockServices } from './lock-services.js';
import { type LockedMethod, lockedMethods } from './locked-method.js';
import type { MethodStep } from './method-step.js';
import { isObject } from './request-values.js';
import { assertNotUnlocked } from './unlocked.decorator.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** Instances that Nest injects nothing into. A value may belong to one application after the other, and then has each one's. */
const adopted = new WeakSet<object>();

/**
 * Looks at every locked method when the application starts: a key that can never be resolved stops it. Gives the service
 * to instances made by factories, to which Nest injects no properties. Then has the backends look too. Locking does not
 * depend on it: a method that it does not reach throws when it is called.
 */
@Injectable()
export class LockedExplorer implements OnModuleInit, OnApplicationBootstrap {
  /** With what each was given: instances of one class may have been given different things. */
  readonly #steps = new Map<MethodStep, Set<unknown>>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly moduleRef: ModuleRef,
    private readonly services: LockServices,
    private readonly config: ApplicationConfig,
  ) {}

  /** @throws LockConfigurationError */
  onModuleInit(): void {
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      if (!wrapper.isNotMetatype) this.#validate(wrapper);
      else this.#adoptAll(wrapper);
    }
  }

  /** When every module is initialised, and may have run its migrations. @throws LockConfigurationError */
  async onApplicationBootstrap(): Promise<void> {
    for (const [step, given] of this.#steps) for (const needed of given) await step.start(needed);
    await this.services.start();
  }

  #validate({ metatype: classRef, instance, host }: Wrapper): void {
    const prefixes = [this.config.getGlobalPrefix(), ...modulePaths(host?.metatype)];
    if (typeof classRef !== 'function' || !isObject(classRef.prototype)) return;
    assertStepsLocked(classRef.prototype);
    const methods = lockedMethods(classRef.prototype);
    assertNotUnlocked(classRef.prototype, methods);
    for (const method of methods) {
      method.validate(classRef, this.services.get(method.backend), prefixes);
      this.#note(method.step, instance);
    }
  }

  #note(step: MethodStep | undefined, instance: unknown): void {
    const needed: unknown = step && isObject(instance) ? Reflect.get(instance, step.property) : undefined;
    if (!step || needed === undefined) return;
    this.#steps.set(step, (this.#steps.get(step) ?? new Set()).add(needed));
  }

  #adoptAll(wrapper: Wrapper): void {
    this.#adopt(wrapper.instance);
    for (const transient of wrapper.getStaticTransientInstances()) this.#adopt(transient?.instance);
    const { metatype } = wrapper;
    if (
      !wrapper.isFactory ||
      typeof metatype !== 'function' ||
      (wrapper.isDependencyTreeStatic() && !wrapper.isTransient)
    )
      return;
    wrapper.metatype = async (...args: unknown[]): Promise<unknown> => {
      const instance: unknown = await Reflect.apply(metatype, undefined, args);
      this.#adopt(instance);
      return instance;
    };
  }

  #adopt(instance: unknown): void {
    if (!isObject(instance)) return;
    assertStepsLocked(instance);
    const methods = lockedMethods(instance);
    assertNotUnlocked(Object.getPrototypeOf(instance) ?? instance, methods);
    if (methods.some(({ property }) => Reflect.get(instance, property) === undefined)) adopted.add(instance);
    for (const method of methods) {
      method.validate(instance.constructor, this.services.get(method.backend));
      Reflect.set(instance, method.property, this.#injected(instance, method));
      if (method.step) this.#adoptStep(instance, method.step);
      this.#note(method.step, instance);
    }
  }

  /** By its token, so that a service that a test overrides is overridden here too. */
  #service({ backend }: LockedMethod): LockService | undefined {
    return this.services.get(backend) && this.moduleRef.get<LockService>(getLockServiceToken(backend));
  }

  #needed({ step: { needs, advice } }: MethodStep): unknown {
    try {
      return this.moduleRef.get<unknown>(needs, { strict: false });
    } catch {
      throw new LockConfigurationError(advice, 'dataSource');
    }
  }

  #adoptStep(instance: object, step: MethodStep): void {
    if (this.#given(instance, step.property) === undefined) Reflect.set(instance, step.property, this.#needed(step));
  }

  #given(instance: object, property: symbol): unknown {
    return adopted.has(instance) ? undefined : Reflect.get(instance, property);
  }

  /** A factory, or another name of a provider, may hand on what Nest made: with the service of another module. */
  #injected(instance: object, method: LockedMethod): unknown {
    const { property, backend, label } = method;
    const service: unknown =
      this.#given(instance, property) ?? this.#service(method) ?? Reflect.get(instance, property);
    if (service !== undefined) return service;
    throw new LockConfigurationError(
      `${label} is locked by the backend "${backend}", and DistributedLockModule has none`,
      'service',
    );
  }
}

/** What `RouterModule` puts before the routes of a module, and notes on it for each application. */
function modulePaths(module: object | undefined): string[] {
  if (!module) return [];
  const keys: readonly unknown[] = Reflect.getMetadataKeys(module);
  return keys
    .filter((key) => typeof key === 'string' && key.startsWith('__module_path__'))
    .map((key) => String(Reflect.getMetadata(key, module)));
}
