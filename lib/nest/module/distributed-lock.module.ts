import { ConfigurableModuleBuilder, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { APP_FILTER, ApplicationConfig, DiscoveryModule, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { type GivenBackend, LockConfigurationError, LockService } from '../../core/index.js';
import { foreignServiceClasses } from '../copies.js';
import {
  DISTRIBUTED_LOCK_OPTIONS,
  type DistributedLockAsyncOptions,
  type DistributedLockExtras,
  type DistributedLockOptions,
  resolveModuleOptions,
} from './distributed-lock-options.js';
import { DEFAULT_BACKEND, getLockServiceToken, LOCK_SERVICES } from '../inject-lock-service.decorator.js';
import { assertAnswers, type LockAnswers } from '../requests/lock-answers.js';
import { LeadsModule } from '../leads/leads.module.js';
import { LockServices } from './lock-services.js';
import { MadeOnce } from './made-once.js';
import { LockedExplorer } from '../locked/locked.explorer.js';
import { LockErrors } from '../requests/lock-errors.js';

interface Extras extends DistributedLockExtras {
  names?: readonly string[];
}

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<GivenBackend | DistributedLockOptions>({
  optionsInjectionToken: DISTRIBUTED_LOCK_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createLockOptions')
  .setExtras<Extras>(
    { isGlobal: true, exceptionFilter: true, names: [DEFAULT_BACKEND] },
    (definition, { isGlobal = true, exceptionFilter = true, names = [DEFAULT_BACKEND] }) => {
      const services = names.map((name) => ({
        provide: getLockServiceToken(name),
        useFactory: (made: LockServices) => made.get(name),
        inject: [LOCK_SERVICES],
      }));
      const aliases = (): Provider[] =>
        foreignServiceClasses().map((provide) => ({ provide, useExisting: LockService }));
      const answers = exceptionFilter === true ? {} : exceptionFilter;
      if (answers) assertAnswers(answers);
      // Before 11.2 Nest makes the providers of a module again for a lazy module that imports it.
      const made = new WeakMap<ModulesContainer, LockServices>();
      const own = [
        ...(definition.providers ?? []),
        {
          provide: LOCK_SERVICES,
          useFactory: (options: GivenBackend | DistributedLockOptions, modules: ModulesContainer) => {
            const present = made.get(modules) ?? new LockServices(options, names, modules);
            made.set(modules, present);
            return present;
          },
          inject: [DISTRIBUTED_LOCK_OPTIONS, ModulesContainer],
        },
        ...services,
        ...(answers ? lockErrorProviders(answers) : []),
      ];
      return {
        ...definition,
        global: isGlobal,
        // Nest reads these when it has all modules. Other copies of this package may be loaded after this call.
        get providers() {
          return [...own, ...aliases()];
        },
        get exports() {
          return [...services, ...aliases()];
        },
      };
    },
  )
  .build();

function lockErrorProviders(answers: LockAnswers): Provider[] {
  const errors = {
    provide: LockErrors,
    useFactory: (config: ApplicationConfig, host: HttpAdapterHost) => new LockErrors(answers, config, host),
    inject: [ApplicationConfig, HttpAdapterHost],
  };
  return [errors, { provide: APP_FILTER, useExisting: LockErrors }];
}

/**
 * Provides a `LockService` for each backend and makes `@Locked` work. Import it once, in the root module. It closes the
 * backends when the application shuts down: call `app.enableShutdownHooks()`, so that signals shut it down.
 */
@Module({ imports: [DiscoveryModule, LeadsModule], providers: [MadeOnce, LockedExplorer] })
export class DistributedLockModule extends ConfigurableModuleClass {
  /** @throws LockConfigurationError */
  static override forRoot(
    given: GivenBackend | (DistributedLockOptions & DistributedLockExtras),
    ...rest: readonly never[]
  ): DynamicModule {
    if (rest.length > 0) {
      const why =
        'forRoot takes one argument. Options stand beside the backend: forRoot({ backend, namespace: "shop" })';
      throw new LockConfigurationError(why, 'backend');
    }
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
   * `backends` lists the names, if there are others than `default`: providers are known before a factory runs.
   * `isGlobal` and `exceptionFilter` stand beside the factory, which comes too late for them.
   */
  static override forRootAsync({ backends, ...options }: DistributedLockAsyncOptions): DynamicModule {
    return super.forRootAsync({ ...options, ...(backends ? { names: backends } : {}) });
  }
}
