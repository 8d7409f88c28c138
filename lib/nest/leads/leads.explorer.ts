import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, LazyModuleLoader, ModuleRef, ModulesContainer } from '@nestjs/core';
import { type Leadership, LockConfigurationError, type LockHandle, type LockService } from '../../core/index.js';
import { isMethod, labelOf } from '../../decorators/declaration.js';
import { getLockServiceToken } from '../inject-lock-service.decorator.js';
import { type LeadsMethod, leadsMethods } from './leads.decorator.js';
import { endFirst } from '../lifecycle/hook-order.js';
import { exploreLazyModules, type ModuleExplorer } from '../lifecycle/lazy-modules.js';
import { lockedMethods } from '../locked/locked-methods.js';
import { isObject } from '../../decorators/is-object.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/**
 * Stands for the offices of all `@Leads`, once the application has started, or has loaded a lazy module, and until it
 * begins to end.
 */
@Injectable()
export class LeadsExplorer implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, ModuleExplorer {
  /** Those that do not stand yet. */
  readonly #instances = new Map<object, readonly LeadsMethod[]>();
  #isStarted = false;
  readonly #standing: Leadership[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly moduleRef: ModuleRef,
    modules: ModulesContainer,
    lazyModules: LazyModuleLoader,
  ) {
    // Leaders end before anything that their work may need.
    endFirst(modules, LeadsExplorer);
    exploreLazyModules(lazyModules, modules, this);
  }

  /** @throws LockConfigurationError */
  onModuleInit(): void {
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) this.#find(wrapper);
  }

  /** @throws LockConfigurationError */
  async explore(module: Parameters<ModuleExplorer['explore']>[0]): Promise<void> {
    for (const wrapper of this.discovery.getProviders({}, [module])) this.#find(wrapper);
    if (this.#isStarted) this.#standAll();
  }

  /** @throws LockConfigurationError */
  async onApplicationBootstrap(): Promise<void> {
    this.#isStarted = true;
    try {
      this.#standAll();
    } catch (error) {
      await this.onModuleDestroy();
      throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    // Nest 11.0 calls it also on what it has not constructed, when a lazy module has failed.
    if (!(#standing in this)) return;
    await Promise.all(this.#standing.map((leadership) => leadership.leave('shutdown')));
  }

  #find(wrapper: Wrapper): void {
    const { instance, metatype, isTransient, isNotMetatype } = wrapper;
    const prototype: unknown = isNotMetatype ? instance : typeof metatype === 'function' && metatype.prototype;
    const methods = isObject(prototype) ? leadsMethods(prototype) : [];
    for (const { declaration } of methods) {
      const refused = (why: string): Error =>
        new LockConfigurationError(`@Leads ${labelOf(declaration)} ${why}`, 'method');
      if (isTransient || !wrapper.isDependencyTreeStatic()) {
        throw refused('needs a provider that exists once, and is neither transient nor made for a request');
      }
      if (
        isObject(prototype) &&
        lockedMethods(prototype).some((locked) => locked.declaration.name === declaration.name)
      ) {
        throw refused('has @Locked, too: its term is a lock already');
      }
    }
    if (methods.length > 0 && isObject(instance)) this.#instances.set(instance, methods);
  }

  #standAll(): void {
    for (const [instance, methods] of this.#instances) {
      this.#instances.delete(instance);
      for (const method of methods) this.#standing.push(this.#stand(instance, method));
    }
  }

  #stand(instance: object, { declaration, key, backend, options, property }: LeadsMethod): Leadership {
    // Nest injects no properties into what a factory has made.
    const injected: LockService | undefined = Reflect.get(instance, property);
    const service = injected ?? this.moduleRef.get<LockService>(getLockServiceToken(backend), { strict: false });
    const work = (term: LockHandle): unknown => {
      const method: unknown = Reflect.get(instance, declaration.name);
      return isMethod(method) ? Reflect.apply(method, instance, [term]) : undefined;
    };
    return service.lead(key, work, options);
  }
}
