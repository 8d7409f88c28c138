import type { OnApplicationShutdown, OnModuleDestroy } from '@nestjs/common';
import { LockConfigurationError, LockService } from '../core/index.js';
import { type DistributedLockOptions, type GivenBackend, resolveModuleOptions } from './distributed-lock-options.js';

/**
 * A module's services, and their end: as soon as the application shuts down nobody gets a lock any more, and only when the
 * last request has been answered the rest is given back and the backends are closed.
 */
export class LockServices implements OnModuleDestroy, OnApplicationShutdown {
  readonly #services: ReadonlyMap<string, LockService>;

  /** @throws LockConfigurationError also when the backends are not those of `names` */
  constructor(given: GivenBackend | DistributedLockOptions, names: readonly string[]) {
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
  }

  get(name: string): LockService | undefined {
    return this.#services.get(name);
  }

  /** Has each backend look for what can never work. @throws LockConfigurationError: all are closed, so that the process can end */
  async start(): Promise<void> {
    try {
      await Promise.all(Array.from(this.#services.values(), (service) => service.start()));
    } catch (error) {
      await this.onApplicationShutdown();
      throw error;
    }
  }

  onModuleDestroy(): void {
    for (const service of this.#services.values()) service.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(Array.from(this.#services.values(), (service) => service.close()));
  }
}
