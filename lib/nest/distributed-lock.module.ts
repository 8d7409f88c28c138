import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import type { GivenBackend } from '../core/index.js';
import { type DistributedLockOptions, resolveModuleOptions } from './distributed-lock-options.js';
import {
  ConfigurableModuleClass,
  type DistributedLockAsyncOptions,
  type DistributedLockExtras,
} from './distributed-lock.module-definition.js';
import { LockedExplorer } from './locked.explorer.js';

/**
 * Provides a `LockService` for each backend and makes `@Locked` work. Import it once, in the root module. It closes the
 * backends when the application shuts down; call `app.enableShutdownHooks()` so that signals do that too.
 */
@Module({ imports: [DiscoveryModule], providers: [LockedExplorer] })
export class DistributedLockModule extends ConfigurableModuleClass {
  /** @throws LockConfigurationError */
  static override forRoot(given: GivenBackend | (DistributedLockOptions & DistributedLockExtras)): DynamicModule {
    // The builder copies options key by key, which would strip a live backend of its methods.
    const { backends, options, logger } = resolveModuleOptions(given);
    const names = Object.keys(backends);
    return super.forRoot({ ...options, ...(logger === undefined ? {} : { logger }), backends, names });
  }

  /**
   * The same from a factory, or from a class that implements `DistributedLockOptionsFactory`:
   * ```ts
   * DistributedLockModule.forRootAsync({
   *   imports: [ConfigModule],
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => redis({ url: config.getOrThrow('REDIS_URL') }),
   * })
   * ```
   * `backends` names what the factory returns, if that is more than `default`: providers are known before a factory runs.
   * `isGlobal` and `exceptionFilter` stand beside the factory, because it comes too late for them.
   */
  static override forRootAsync({ backends, ...options }: DistributedLockAsyncOptions): DynamicModule {
    return super.forRootAsync({ ...options, ...(backends ? { names: backends } : {}) });
  }
}
