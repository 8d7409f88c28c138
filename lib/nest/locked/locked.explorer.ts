import { Inject, Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit, Optional } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, LazyModuleLoader, ModuleRef, ModulesContainer } from '@nestjs/core';
import { LockConfigurationError, type LockService } from '../../core/index.js';
import { assertStepsLocked } from '../../decorators/locked-step.js';
import { getSeveralCopiesWarning } from '../copies.js';
import { getLockServiceToken, LOCK_SERVICES, type NamedLockServices } from '../inject-lock-service.decorator.js';
import { exploreLazyModules, type ModuleExplorer } from '../lifecycle/lazy-modules.js';
import { findModule, findProvidingModule } from '../lifecycle/nest-modules.js';
import type { LockedMethod } from './locked-method.js';
import { getLockedMethods, hasLockedMethod } from './locked-methods.js';
import type { MethodStep } from './method-step.js';
import { isObject } from '../../decorators/is-object.js';
import { LockErrorTranslator } from '../requests/lock-error-translator.js';
import { setLockErrorTranslator } from '../requests/lock-errors.interceptor.js';
import { interceptHandlers } from '../requests/request-interceptors.js';
import { assertOverridesLocked } from './unlocked.decorator.js';

type ProviderWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/**
 * Instances whose services this class has set, because Nest injects nothing into them. An instance may be a provider of
 * several applications. The last application then replaces the services of the instance.
 */
const instancesWithSetServices = new WeakSet<object>();

@Injectable()
export class LockedExplorer implements OnModuleInit, OnApplicationBootstrap, ModuleExplorer {
  /** Steps that are not started yet, with their providers. Instances of one class may have different providers. */
  readonly #pendingSteps = new Map<MethodStep, Set<unknown>>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly moduleRef: ModuleRef,
    @Inject(LOCK_SERVICES) private readonly services: NamedLockServices,
    private readonly config: ApplicationConfig,
    modules: ModulesContainer,
    lazyModules: LazyModuleLoader,
    @Optional() translator?: LockErrorTranslator,
  ) {
    if (translator) setLockErrorTranslator(modules, translator, findModule(modules, moduleRef)?.isGlobal);
    interceptHandlers(modules, hasLockedMethod);
    exploreLazyModules(lazyModules, modules, this);
  }

  onModuleInit(): void {
    const warning = getSeveralCopiesWarning();
    if (warning !== undefined) new Logger('LockService').warn(warning);
    this.#exploreProviders([...this.discovery.getControllers(), ...this.discovery.getProviders()]);
  }

  /** @throws LockConfigurationError */
  async explore(module: Parameters<ModuleExplorer['explore']>[0]): Promise<void> {
    this.#exploreProviders(this.discovery.getProviders({}, [module]));
    await this.#startSteps();
  }

  /**
   * Runs after every `onModuleInit`, in which applications may run their migrations.
   * @throws LockConfigurationError
   */
  async onApplicationBootstrap(): Promise<void> {
    await this.#startSteps();
    await this.services.start();
  }

  #exploreProviders(wrappers: readonly ProviderWrapper[]): void {
    for (const wrapper of wrappers) {
      if (wrapper.isNotMetatype) this.#exploreInstances(wrapper);
      else this.#exploreClass(wrapper);
    }
  }

  async #startSteps(): Promise<void> {
    for (const [step, providers] of this.#pendingSteps) for (const provider of providers) await step.start(provider);
    this.#pendingSteps.clear();
  }

  #exploreClass({ metatype: classRef, instance, host }: ProviderWrapper): void {
    const routePrefixes = [this.config.getGlobalPrefix(), ...getRouterPaths(host?.metatype)];
    if (typeof classRef !== 'function' || !isObject(classRef.prototype)) return;
    assertStepsLocked(classRef.prototype);
    const methods = getLockedMethods(classRef.prototype);
    assertOverridesLocked(classRef.prototype, methods);
    for (const method of methods) {
      const service = this.#isServedByThisExplorer(host, method) ? this.services.get(method.backend) : undefined;
      method.validate(classRef, service, routePrefixes);
      this.#addPendingStep(method.step, instance);
    }
  }

  #addPendingStep(step: MethodStep | undefined, instance: unknown): void {
    const provider: unknown = step && isObject(instance) ? Reflect.get(instance, step.providerProperty) : undefined;
    if (!step || provider === undefined) return;
    this.#pendingSteps.set(step, (this.#pendingSteps.get(step) ?? new Set()).add(provider));
  }

  #exploreInstances(wrapper: ProviderWrapper): void {
    const { metatype, isFactory, isTransient, isAlias, host } = wrapper;
    if (isAlias) return;
    this.#setServices(wrapper.instance, host);
    for (const transient of wrapper.getStaticTransientInstances()) this.#setServices(transient?.instance, host);
    const isSingleton = wrapper.isDependencyTreeStatic() && !isTransient;
    if (!isFactory || isSingleton || typeof metatype !== 'function') return;
    // Nest calls the metatype of a request-scoped or transient factory for each new instance.
    wrapper.metatype = async (...args: unknown[]): Promise<unknown> => {
      const instance: unknown = await Reflect.apply(metatype, undefined, args);
      this.#setServices(instance, host);
      return instance;
    };
  }

  #setServices(instance: unknown, host: ProviderWrapper['host']): void {
    if (!isObject(instance)) return;
    assertStepsLocked(instance);
    const allMethods = getLockedMethods(instance);
    assertOverridesLocked(Object.getPrototypeOf(instance) ?? instance, allMethods);
    const methods = allMethods.filter((method) => this.#isServedByThisExplorer(host, method));
    const lacksService = methods.some(({ serviceProperty }) => Reflect.get(instance, serviceProperty) === undefined);
    if (lacksService) instancesWithSetServices.add(instance);
    for (const method of methods) {
      method.validate(instance.constructor, this.services.get(method.backend));
      Reflect.set(instance, method.serviceProperty, this.#findService(instance, method));
      if (method.step) this.#setStepProvider(instance, method.step);
      this.#addPendingStep(method.step, instance);
    }
  }

  /** Returns whether the providers of `host` use the lock services of this explorer's module. */
  #isServedByThisExplorer(host: ProviderWrapper['host'], { backend }: LockedMethod): boolean {
    const providingModule = host && findProvidingModule(host, getLockServiceToken(backend));
    const services: unknown = providingModule?.getProviderByKey(LOCK_SERVICES)?.instance;
    return services === undefined || services === this.services;
  }

  #setStepProvider(instance: object, { providerProperty, step }: MethodStep): void {
    if (this.#getInjectedProvider(instance, providerProperty) !== undefined) return;
    try {
      Reflect.set(instance, providerProperty, this.moduleRef.get<unknown>(step.needs, { strict: false }));
    } catch {
      throw new LockConfigurationError(step.advice, 'dataSource');
    }
  }

  /** Returns the provider in the property, unless this class has put it there. */
  #getInjectedProvider(instance: object, property: symbol): unknown {
    return instancesWithSetServices.has(instance) ? undefined : Reflect.get(instance, property);
  }

  /**
   * Returns the service that Nest injected, or else the service of this explorer's module. The services differ when a
   * factory returns a provider of a module with lock services of its own.
   */
  #findService(instance: object, { serviceProperty, backend, label }: LockedMethod): unknown {
    // The service is looked up by its token, so that a test can override it.
    const moduleService = this.services.get(backend) && this.moduleRef.get<LockService>(getLockServiceToken(backend));
    const service: unknown =
      this.#getInjectedProvider(instance, serviceProperty) ?? moduleService ?? Reflect.get(instance, serviceProperty);
    if (service !== undefined) return service;
    const reason = `${label} is locked by the backend "${backend}", and DistributedLockModule has none`;
    throw new LockConfigurationError(reason, 'backend');
  }
}

/** Returns the prefixes of a module's routes, which `RouterModule` records in the module's metadata. */
function getRouterPaths(module: object | undefined): string[] {
  if (!module) return [];
  const keys: readonly unknown[] = Reflect.getMetadataKeys(module);
  return keys
    .filter((key) => typeof key === 'string' && key.startsWith('__module_path__'))
    .map((key) => String(Reflect.getMetadata(key, module)));
}
