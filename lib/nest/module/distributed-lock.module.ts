import { ConfigurableModuleBuilder, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { APP_FILTER, ApplicationConfig, DiscoveryModule, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { type GivenBackend, LockConfigurationError, LockService } from '../../core/index.js';
import { getForeignServiceClasses } from '../copies.js';
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
import { SingletonCheck } from './singleton-check.js';
import { LockedExplorer } from '../locked/locked.explorer.js';
import { LockErrorTranslator } from '../requests/lock-error-translator.js';

/** Options that Nest needs before it runs a factory. */
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
      const serviceProviders = names.map((name) => ({
        provide: getLockServiceToken(name),
        useFactory: (services: LockServices) => services.get(name),
        inject: [LOCK_SERVICES],
      }));
      const createForeignAliases = (): Provider[] =>
        getForeignServiceClasses().map((provide) => ({ provide, useExisting: LockService }));
      const answers = exceptionFilter === true ? {} : exceptionFilter;
      if (answers) assertAnswers(answers);
      // Before 11.2, Nest calls the factory below again for each lazy module that imports this module.
      const servicesByApplication = new WeakMap<ModulesContainer, LockServices>();
      const ownProviders = [
        ...(definition.providers ?? []),
        {
          provide: LOCK_SERVICES,
          useFactory: (options: GivenBackend | DistributedLockOptions, modules: ModulesContainer) => {
            const services = servicesByApplication.get(modules) ?? new LockServices(options, names, modules);
            servicesByApplication.set(modules, services);
            return services;
          },
          inject: [DISTRIBUTED_LOCK_OPTIONS, ModulesContainer],
        },
        ...serviceProviders,
        ...(answers ? createLockErrorProviders(answers) : []),
      ];
      return {
        ...definition,
        global: isGlobal,
        // Nest calls these getters when all modules are loaded. All copies of this package are loaded by then, too.
        get providers() {
          return [...ownProviders, ...createForeignAliases()];
        },
        get exports() {
          return [...serviceProviders, ...createForeignAliases()];
        },
      };
    },
  )
  .build();

function createLockErrorProviders(answers: LockAnswers): Provider[] {
  const translatorProvider = {
    provide: LockErrorTranslator,
    useFactory: (config: ApplicationConfig, host: HttpAdapterHost) => new LockErrorTranslator(answers, config, host),
    inject: [ApplicationConfig, HttpAdapterHost],
  };
  return [translatorProvider, { provide: APP_FILTER, useExisting: LockErrorTranslator }];
}

/**
 * Provides a `LockService` for each backend and makes `@Locked` work. Import the module once, in the root module. The
 * module closes the backends when the application shuts down: call `app.enableShutdownHooks()`, so that signals shut it
 * down.
 */
@Module({ imports: [DiscoveryModule, LeadsModule], providers: [SingletonCheck, LockedExplorer] })
export class DistributedLockModule extends ConfigurableModuleClass {
  /** @throws LockConfigurationError */
  static override forRoot(
    input: GivenBackend | (DistributedLockOptions & DistributedLockExtras),
    ...surplusArguments: readonly never[]
  ): DynamicModule {
    if (surplusArguments.length > 0) {
      const message =
        'forRoot takes one argument. Options stand beside the backend: forRoot({ backend, namespace: "shop" })';
      throw new LockConfigurationError(message, 'backend');
    }
    // The builder copies the own properties of its argument. A backend as the argument would lose its methods.
    const { backends, serviceOptions, logger } = resolveModuleOptions(input);
    const names = Object.keys(backends);
    return super.forRoot({ ...serviceOptions, ...(logger === undefined ? {} : { logger }), backends, names });
  }

  /**
   * Configures the module by a factory, or by a class that implements `DistributedLockOptionsFactory`:
   * ```ts
   * DistributedLockModule.forRootAsync({
   *   imports: [ConfigModule],
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => redis({ url: config.getOrThrow('REDIS_URL') }),
   * })
   * ```
   * `backends` lists the names, if there are others than `default`. Nest needs them, `isGlobal` and `exceptionFilter`
   * before it runs the factory. Hence these three options stand beside the factory.
   */
  static override forRootAsync({ backends, ...options }: DistributedLockAsyncOptions): DynamicModule {
    return super.forRootAsync({ ...options, ...(backends ? { names: backends } : {}) });
  }
}
