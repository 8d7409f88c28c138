import { Inject, Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit, Optional } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, LazyModuleLoader, ModuleRef, ModulesContainer } from '@nestjs/core';
import { LockConfigurationError, type LockService } from '../../core/index.js';
import { assertStepsLocked } from '../../decorators/locked-step.js';
import { describeCopies } from '../copies.js';
import { getLockServiceToken, LOCK_SERVICES, type NamedLockServices } from '../inject-lock-service.decorator.js';
import { exploreLazyModules, type ModuleExplorer } from '../lifecycle/lazy-modules.js';
import { type LockedMethod, lockedMethods } from './locked-method.js';
import type { MethodStep } from './method-step.js';
import { isObject } from '../../decorators/is-object.js';
import { LockErrors } from '../requests/lock-errors.js';
import { interceptHandlers } from '../requests/request-interceptors.js';
import { assertNotUnlocked } from './unlocked.decorator.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** Instances that Nest injects nothing into. A value may serve several applications, the last one counts. */
const adopted = new WeakSet<object>();

/**
 * Looks at every locked method when the application starts, or loads a lazy module: a key that can never be resolved
 * stops that. Gives the service to instances of factories, into which Nest injects no properties. Then starts the services. A method that it
 * does not reach throws when it is called.
 */
@Injectable()
export class LockedExplorer implements OnModuleInit, OnApplicationBootstrap, ModuleExplorer {
  /** Steps that are not started, and the providers of their instances: those of one class may have been given different ones. */
  readonly #steps = new Map<MethodStep, Set<unknown>>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly moduleRef: ModuleRef,
    @Inject(LOCK_SERVICES) private readonly services: NamedLockServices,
    private readonly config: ApplicationConfig,
    modules: ModulesContainer,
    lazyModules: LazyModuleLoader,
    @Optional() errors?: LockErrors,
  ) {
    interceptHandlers(modules, errors);
    exploreLazyModules(lazyModules, modules, this);
  }

  onModuleInit(): void {
    const copies = describeCopies();
    if (copies !== undefined) new Logger('LockService').warn(copies);
    this.#exploreAll([...this.discovery.getControllers(), ...this.discovery.getProviders()]);
  }

  /** @throws LockConfigurationError */
  async explore(module: Parameters<ModuleExplorer['explore']>[0]): Promise<void> {
    this.#exploreAll(this.discovery.getProviders({}, [module]));
    await this.#startSteps();
  }

  /** By then every module is initialised, and may have run its migrations. @throws LockConfigurationError */
  async onApplicationBootstrap(): Promise<void> {
    await this.#startSteps();
    await this.services.start();
  }

  #exploreAll(wrappers: readonly Wrapper[]): void {
    for (const wrapper of wrappers) {
      if (!wrapper.isNotMetatype) this.#validate(wrapper);
      else this.#adoptAll(wrapper);
    }
  }

  async #startSteps(): Promise<void> {
    for (const [step, given] of this.#steps) for (const needed of given) await step.start(needed);
    this.#steps.clear();
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
    const { metatype, isFactory, isTransient } = wrapper;
    const isMadeOnce = wrapper.isDependencyTreeStatic() && !isTransient;
    if (!isFactory || isMadeOnce || typeof metatype !== 'function') return;
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

  #adoptStep(instance: object, { property, step }: MethodStep): void {
    if (this.#given(instance, property) !== undefined) return;
    try {
      Reflect.set(instance, property, this.moduleRef.get<unknown>(step.needs, { strict: false }));
    } catch {
      throw new LockConfigurationError(step.advice, 'dataSource');
    }
  }

  #given(instance: object, property: symbol): unknown {
    return adopted.has(instance) ? undefined : Reflect.get(instance, property);
  }

  /** A factory, or another name of a provider, may return an instance that Nest gave the service of another module. */
  #injected(instance: object, { property, backend, label }: LockedMethod): unknown {
    // By its token, so that a service that a test overrides is overridden here, too.
    const ours = this.services.get(backend) && this.moduleRef.get<LockService>(getLockServiceToken(backend));
    const service: unknown = this.#given(instance, property) ?? ours ?? Reflect.get(instance, property);
    if (service !== undefined) return service;
    const why = `${label} is locked by the backend "${backend}", and DistributedLockModule has none`;
    throw new LockConfigurationError(why, 'backend');
  }
}

/** The prefixes that `RouterModule` puts before the routes of a module. It notes them there for each application. */
function modulePaths(module: object | undefined): string[] {
  if (!module) return [];
  const keys: readonly unknown[] = Reflect.getMetadataKeys(module);
  return keys
    .filter((key) => typeof key === 'string' && key.startsWith('__module_path__'))
    .map((key) => String(Reflect.getMetadata(key, module)));
}
