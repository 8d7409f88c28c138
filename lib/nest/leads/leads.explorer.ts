import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, LazyModuleLoader, ModuleRef, ModulesContainer } from '@nestjs/core';
import {
  isLockService,
  type Leadership,
  LockConfigurationError,
  type LockHandle,
  type LockService,
} from '../../core/index.js';
import { isMethod, getMethodLabel } from '../../decorators/declaration.js';
import { getLockServiceToken } from '../inject-lock-service.decorator.js';
import { type LeadsMethod, getLeadsMethods } from './leads.decorator.js';
import { makeModuleEndFirst } from '../lifecycle/hook-order.js';
import { exploreLazyModules, type ModuleExplorer } from '../lifecycle/lazy-modules.js';
import { findProvidingModule } from '../lifecycle/nest-modules.js';
import { getLockedMethods } from '../locked/locked-methods.js';
import { isObject } from '../../decorators/is-object.js';

type ProviderWrapper = ReturnType<DiscoveryService['getProviders']>[number];

interface PendingMethods {
  readonly methods: readonly LeadsMethod[];
  /** Module that provides the instance. */
  readonly host: ProviderWrapper['host'];
}

@Injectable()
export class LeadsExplorer implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, ModuleExplorer {
  /** Methods whose leaderships have not started yet, by instance. */
  readonly #pendingMethods = new Map<object, PendingMethods>();
  #isStarted = false;
  readonly #leaderships: Leadership[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly moduleRef: ModuleRef,
    modules: ModulesContainer,
    lazyModules: LazyModuleLoader,
  ) {
    // Leaderships must end before the providers that their work may use.
    makeModuleEndFirst(modules, LeadsExplorer);
    exploreLazyModules(lazyModules, modules, this);
  }

  /** @throws LockConfigurationError */
  onModuleInit(): void {
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()])
      this.#collectMethods(wrapper);
  }

  /** @throws LockConfigurationError */
  async explore(module: Parameters<ModuleExplorer['explore']>[0]): Promise<void> {
    for (const wrapper of this.discovery.getProviders({}, [module])) this.#collectMethods(wrapper);
    if (this.#isStarted) this.#startPendingLeaderships();
  }

  /** @throws LockConfigurationError */
  async onApplicationBootstrap(): Promise<void> {
    this.#isStarted = true;
    try {
      this.#startPendingLeaderships();
    } catch (error) {
      await this.onModuleDestroy();
      throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    // Nest 11.0 calls this hook also on an object that it has not constructed, after a lazy module has failed.
    if (!(#leaderships in this)) return;
    await Promise.all(this.#leaderships.map((leadership) => leadership.endCandidacy('shutdown')));
  }

  #collectMethods(wrapper: ProviderWrapper): void {
    const { instance, metatype, isTransient, isNotMetatype, isAlias, host } = wrapper;
    if (isAlias) return;
    const prototype: unknown = isNotMetatype ? instance : typeof metatype === 'function' && metatype.prototype;
    const methods = isObject(prototype) ? getLeadsMethods(prototype) : [];
    for (const { declaration } of methods) {
      const createMethodError = (reason: string): Error =>
        new LockConfigurationError(`@Leads ${getMethodLabel(declaration)} ${reason}`, 'method');
      if (isTransient || !wrapper.isDependencyTreeStatic()) {
        throw createMethodError('needs a provider that exists once, and is neither transient nor made for a request');
      }
      const lockedMethods = isObject(prototype) ? getLockedMethods(prototype) : [];
      if (lockedMethods.some((method) => method.declaration.name === declaration.name)) {
        throw createMethodError('has @Locked, too: its term is a lock already');
      }
    }
    if (methods.length > 0 && isObject(instance)) this.#pendingMethods.set(instance, { methods, host });
  }

  #startPendingLeaderships(): void {
    for (const [instance, { methods, host }] of this.#pendingMethods) {
      this.#pendingMethods.delete(instance);
      for (const method of methods) this.#leaderships.push(this.#startLeadership(instance, method, host));
    }
  }

  #startLeadership(
    instance: object,
    { declaration, key, backend, options, serviceProperty }: LeadsMethod,
    host: ProviderWrapper['host'],
  ): Leadership {
    // Nest injects no properties into instances that a factory has made.
    const injectedService: LockService | undefined = Reflect.get(instance, serviceProperty);
    const service = injectedService ?? this.#findService(getLockServiceToken(backend), host);
    const work = (term: LockHandle): unknown => {
      const method: unknown = Reflect.get(instance, declaration.name);
      return isMethod(method) ? Reflect.apply(method, instance, [term]) : undefined;
    };
    return service.lead(key, work, options);
  }

  #findService(token: typeof LockService | string, host: ProviderWrapper['host']): LockService {
    const service: unknown = host && findProvidingModule(host, token)?.getProviderByKey(token)?.instance;
    return isLockService(service) ? service : this.moduleRef.get<LockService>(token, { strict: false });
  }
}
