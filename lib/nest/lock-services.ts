import { type BeforeApplicationShutdown, Logger, type LoggerService, type OnApplicationShutdown } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError, LockService } from '../core/index.js';
import { type DistributedLockOptions, type GivenBackend, resolveModuleOptions } from './distributed-lock-options.js';

/**
 * A module's services, and their end. Requests in flight, and all other work that the application waits for, end with their
 * locks: the services end last, after the server and after all other modules.
 */
export class LockServices implements BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #services: ReadonlyMap<string, LockService>;
  readonly #logger: Pick<LoggerService, 'log'> = new Logger('DistributedLockModule');

  /** @throws LockConfigurationError also when the backends are not those of `names` */
  constructor(given: GivenBackend | DistributedLockOptions, names: readonly string[], modules: ModulesContainer) {
    const { backends, options } = resolveModuleOptions(given);
    const found = Object.keys(backends);
    if (found.length !== names.length || !names.every((name) => found.includes(name))) {
      throw new LockConfigurationError(
        `DistributedLockModule was told the names [${names.join(', ')}], its factory made [${found.join(', ')}]; ` +
          'forRootAsync({ names: […] }) must list them, because providers are known before a factory runs',
        'names',
      );
    }
    this.#services = new Map(
      Object.entries(backends).map(([name, backend]) => [name, new LockService(backend, options)]),
    );
    endLast(modules);
  }

  get(name: string): LockService | undefined {
    return this.#services.get(name);
  }

  /** Has each backend look for what can never work. @throws LockConfigurationError: all are closed, so that the process can end */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#each((service) => service.start()));
    } catch (error) {
      await Promise.all(this.#each((service) => service.close()));
      throw error;
    }
  }

  /** The server closes next, and waits for its requests. Those who wait for a lock for ever would keep it open. */
  beforeApplicationShutdown(): void {
    this.#each((service) => service.limitWaits());
  }

  async onApplicationShutdown(): Promise<void> {
    const keys = this.#each((service) => service.inspect().map(({ key }) => JSON.stringify(key))).flat();
    if (keys.length > 0) this.#logger.log(`waits for the work under ${keys.slice(0, 10).join(', ')} to end`);
    // Work that holds a lock of one service may need one of another: so all are drained before any is closed.
    await Promise.all(this.#each((service) => service.drain()));
    await Promise.all(this.#each((service) => service.shutdown(0)));
  }

  #each<T>(work: (service: LockService) => T): T[] {
    return Array.from(this.#services.values(), work);
  }
}

/**
 * Nest ends global modules after all others, in the reverse order of their imports. Ours has to end after those that still run
 * work, such as BullMQ's: so we move it behind them, in whichever order they are imported.
 */
function endLast(modules: ModulesContainer): void {
  for (const module of modules.values()) {
    if (module.hasProvider(LockServices)) module.distance = Number.POSITIVE_INFINITY;
  }
}
