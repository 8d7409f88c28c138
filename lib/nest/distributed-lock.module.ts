import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { type DistributedLockOptions, type GivenBackend, resolveModuleOptions } from './distributed-lock-options.js';
import { ConfigurableModuleClass, type DistributedLockExtras } from './distributed-lock.module-definition.js';
import { LockedExplorer } from './locked.explorer.js';

/**
 * Provides a `LockService` for each backend and makes `@Locked` work. Import it once, in the root module. It closes the
 * backends when the application shuts down; call `app.enableShutdownHooks()` so that signals do that too.
 */
@Module({ imports: [DiscoveryModule], providers: [LockedExplorer] })
export class DistributedLockModule extends ConfigurableModuleClass {
  /** @throws LockConfigurationError */
  static override forRoot(
    given: GivenBackend | (DistributedLockOptions & Omit<DistributedLockExtras, 'names'>),
  ): DynamicModule {
    // The builder copies options key by key, which would strip a live backend of its methods.
    const { backends, options } = resolveModuleOptions(given);
    return super.forRoot({ ...options, backends, names: Object.keys(backends) });
  }
}
