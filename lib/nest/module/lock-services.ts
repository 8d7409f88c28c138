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
import { endLast } from '../lifecycle/hook-order.js';
import { LockLogger } from './lock-logger.js';

/**
 * A module's services, and their end. They end last, after the server and all other modules: requests in flight, and
 * other work that the application waits for, keep their locks.
 */
export class LockServices implements NamedLockServices, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #services: ReadonlyMap<string, LockService>;
  #logger: LoggerService = new Logger('LockService');

  /** @throws LockConfigurationError also when the backends are not those of `names` */
  constructor(settings: GivenBackend | DistributedLockOptions, names: readonly string[], modules: ModulesContainer) {
    const { backends, options, logger, isShared } = resolveModuleOptions(settings, names);
    const found = Object.keys(backends);
    if (found.length !== names.length || !names.every((name) => found.includes(name))) {
      throw new LockConfigurationError(
        `DistributedLockModule was told the backends [${names.join(', ')}], its factory made [${found.join(', ')}]; ` +
          'forRootAsync({ backends: […] }) must list them, because providers are known before a factory runs',
        'backends',
      );
    }
    assertOnce(modules);
    if (logger) this.#logger = logger;
    if (options.orderWarnings === true) options.orderWarnings = classByTemplate(modules);
    this.#services = new Map(
      Object.entries(backends).map(([name, value]) => {
        const backend = openBackend(value);
        const label = name === DEFAULT_BACKEND ? backend.name : `${name} (${backend.name})`;
        const { observers: given = [] } = options;
        const isSilent = logger === false || given.some((observer) => observer instanceof LockLogger);
        const logging = new LockLogger({ backend: label, ...(logger ? { logger } : {}) });
        const observers = isSilent ? given : [logging, ...given];
        return [
          name,
          new LockService(backend, { ...options, ...(isShared ? namespaceOf(name, options) : {}), observers }),
        ];
      }),
    );
    // Nest ends global modules in the order of their imports, and some of them still run work, such as BullMQ's.
    endLast(modules, LOCK_SERVICES);
  }

  get(name: string): LockService | undefined {
    return this.#services.get(name);
  }

  /** @throws LockConfigurationError a backend can never work; all are closed then, so that the process can end */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#each((service) => service.start()));
    } catch (error) {
      await Promise.all(this.#each((service) => service.close()));
      throw error;
    }
  }

  /** The grace time begins before the server closes, which a request that never ends keeps open. */
  beforeApplicationShutdown(): void {
    this.#each((service) => service.limitWaits());
  }

  async onApplicationShutdown(): Promise<void> {
    const keys = this.#each((service) => service.inspect().map(({ key }) => JSON.stringify(key))).flat();
    if (keys.length > 0) this.#logger.log(`waits for the work under ${keys.slice(0, 10).join(', ')} to end`);
    // Work that holds a lock of one service may need one of another. Hence all are drained before any is closed.
    await Promise.all(this.#each((service) => service.drain()));
    await Promise.all(this.#each((service) => service.shutdown(0)));
  }

  #each<T>(work: (service: LockService) => T): T[] {
    return Array.from(this.#services.values(), work);
  }
}

/** Keys of its own for one of several names that share a backend. */
function namespaceOf(name: string, { namespace }: LockServiceOptions): LockServiceOptions {
  if (name === DEFAULT_BACKEND) return {};
  const own = name.replaceAll(/[^\w.-]/gu, '-');
  return { namespace: namespace === undefined ? own : `${namespace}.${own}` };
}

/** By the time at which a call tree holds a lock and wants another one, the application has its providers. */
function classByTemplate(modules: ModulesContainer): (key: string) => string {
  let names: KeyTemplateNames | undefined;
  return (key) => (names ??= KeyTemplateNames.of(new DiscoveryService(modules))).nameOf(key);
}

/** @throws LockConfigurationError: with two global modules it depends on the caller which of them has the locks */
function assertOnce(modules: ModulesContainer): void {
  const global = Array.from(modules.values()).filter((module) => module.isGlobal && module.hasProvider(LOCK_SERVICES));
  if (global.length < 2) return;
  throw new LockConfigurationError(
    'DistributedLockModule is imported twice, and each import has locks of its own: import it once, in the root module, and ' +
      'name several backends there; or give the others isGlobal: false. A test overrides DISTRIBUTED_LOCK_OPTIONS instead',
    'isGlobal',
  );
}
