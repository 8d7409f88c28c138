import { type BeforeApplicationShutdown, Logger, type LoggerService, type OnApplicationShutdown } from '@nestjs/common';
import { DiscoveryService, type ModulesContainer } from '@nestjs/core';
import {
  type GivenBackend,
  LockConfigurationError,
  LockService,
  type LockServiceOptions,
  openBackend,
} from '../../core/index.js';
import { type DistributedLockOptions, resolveModuleOptions } from './distributed-lock-options.js';
import { DEFAULT_BACKEND, LOCK_SERVICES, type NamedLockServices } from '../inject-lock-service.decorator.js';
import { KeyTemplateNames } from '../locked/key-template-names.js';
import { makeModuleEndLast } from '../lifecycle/hook-order.js';
import { LockLogger } from './lock-logger.js';

export class LockServices implements NamedLockServices, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #services: ReadonlyMap<string, LockService>;
  #logger: LoggerService = new Logger('LockService');

  /** @throws LockConfigurationError when an option is invalid, or the names of the backends are not `names` */
  constructor(input: GivenBackend | DistributedLockOptions, names: readonly string[], modules: ModulesContainer) {
    const { backends, serviceOptions, logger, sharesBackend } = resolveModuleOptions(input, names);
    const actualNames = Object.keys(backends);
    if (actualNames.length !== names.length || !names.every((name) => actualNames.includes(name))) {
      throw new LockConfigurationError(
        `DistributedLockModule was told the backends [${names.join(', ')}], its factory made [${actualNames.join(', ')}]; ` +
          'forRootAsync({ backends: […] }) must list them, because providers are known before a factory runs',
        'backends',
      );
    }
    assertOneGlobalModule(modules);
    if (logger) this.#logger = logger;
    if (serviceOptions.orderWarnings === true) serviceOptions.orderWarnings = createTemplateNamer(modules);
    this.#services = new Map(
      Object.entries(backends).map(([name, givenBackend]) => {
        const backend = openBackend(givenBackend);
        const backendLabel = name === DEFAULT_BACKEND ? backend.name : `${name} (${backend.name})`;
        const { observers: userObservers = [] } = serviceOptions;
        const needsLogger = logger !== false && !userObservers.some((observer) => observer instanceof LockLogger);
        const lockLogger = new LockLogger({ backend: backendLabel, ...(logger ? { logger } : {}) });
        const observers = needsLogger ? [lockLogger, ...userObservers] : userObservers;
        const namespaceOption = sharesBackend ? getNamespaceOption(name, serviceOptions) : {};
        return [name, new LockService(backend, { ...serviceOptions, ...namespaceOption, observers })];
      }),
    );
    // Other global modules, such as BullMQ's, run work until they end. The lock services must end after them.
    makeModuleEndLast(modules, LOCK_SERVICES);
  }

  get(name: string): LockService | undefined {
    return this.#services.get(name);
  }

  /**
   * @throws LockConfigurationError a backend can never work; all services are closed then, so that the process can end
   */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#mapServices((service) => service.start()));
    } catch (error) {
      await Promise.all(this.#mapServices((service) => service.close()));
      throw error;
    }
  }

  /**
   * Starts the grace time before Nest closes the HTTP server, because a request that never ends keeps the server open.
   */
  beforeApplicationShutdown(): void {
    this.#mapServices((service) => service.beginGraceTime());
  }

  async onApplicationShutdown(): Promise<void> {
    const keys = this.#mapServices((service) => service.inspect().map(({ key }) => JSON.stringify(key))).flat();
    if (keys.length > 0) this.#logger.log(`waits for the work under ${keys.slice(0, 10).join(', ')} to end`);
    // All services are drained before any is closed: work under a lock of one service may need a lock of another.
    await Promise.all(this.#mapServices((service) => service.drain()));
    await Promise.all(this.#mapServices((service) => service.shutdown(0)));
  }

  #mapServices<T>(action: (service: LockService) => T): T[] {
    return Array.from(this.#services.values(), action);
  }
}

/**
 * Returns the namespace that keeps the keys of a named service apart on a shared backend. The default service keeps the
 * namespace of the options.
 */
function getNamespaceOption(name: string, { namespace }: LockServiceOptions): LockServiceOptions {
  if (name === DEFAULT_BACKEND) return {};
  const suffix = name.replaceAll(/[^\w.-]/gu, '-');
  return { namespace: namespace === undefined ? suffix : `${namespace}.${suffix}` };
}

/** Returns a function that names the template of a key. The first call, after the start, collects the templates. */
function createTemplateNamer(modules: ModulesContainer): (key: string) => string {
  let templateNames: KeyTemplateNames | undefined;
  return (key) => (templateNames ??= KeyTemplateNames.of(new DiscoveryService(modules))).nameOf(key);
}

/**
 * @throws LockConfigurationError with several global modules: which of them Nest injects depends on the caller's
 * imports
 */
function assertOneGlobalModule(modules: ModulesContainer): void {
  const globalModules = Array.from(modules.values()).filter(
    (module) => module.isGlobal && module.hasProvider(LOCK_SERVICES),
  );
  if (globalModules.length < 2) return;
  throw new LockConfigurationError(
    'DistributedLockModule is imported twice, and each import has locks of its own: import it once, in the root module, and ' +
      'name several backends there; or give the others isGlobal: false. A test overrides DISTRIBUTED_LOCK_OPTIONS instead',
    'isGlobal',
  );
}
