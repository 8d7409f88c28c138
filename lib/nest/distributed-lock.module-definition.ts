import { type ConfigurableModuleAsyncOptions, ConfigurableModuleBuilder, type Provider } from '@nestjs/common';
import { APP_FILTER, ModulesContainer } from '@nestjs/core';
import type { GivenBackend } from '../core/index.js';
import type { DistributedLockOptions } from './distributed-lock-options.js';
import { DEFAULT_BACKEND, getLockServiceToken } from './inject-lock-service.decorator.js';
import { assertAnswers, type LockAnswers } from './lock-answers.js';
import { LOCK_ANSWERS, LockExceptionFilter } from './lock-exception.filter.js';
import { LockServices } from './lock-services.js';

export interface DistributedLockExtras {
  /** Whether other modules find the services without importing this one. @default true */
  isGlobal?: boolean;
  /**
   * Whether lock errors are answered for: see `LockExceptionFilter`. An object changes status and `Retry-After` by the error's
   * code: `{ LOCK_TIMEOUT: { status: 409, retryAfterSeconds: 3 } }`. Your own global filter for them needs `false`.
   * @default true
   */
  exceptionFilter?: boolean | LockAnswers;
}

/**
 * What `forRoot` was given, or the factory of `forRootAsync` returned: for tests, which put another backend in its place by
 * `overrideProvider(DISTRIBUTED_LOCK_OPTIONS).useValue(memory())`. The real one is then neither opened nor started.
 */
export const DISTRIBUTED_LOCK_OPTIONS = Symbol('options of DistributedLockModule');

interface Extras extends DistributedLockExtras {
  names?: readonly string[];
}

type AsyncOptions = ConfigurableModuleAsyncOptions<GivenBackend | DistributedLockOptions, 'createLockOptions'>;

export interface DistributedLockAsyncOptions extends AsyncOptions, DistributedLockExtras {
  /** How the factory names its backends. @default ['default'] */
  backends?: readonly string[];
}

export const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<GivenBackend | DistributedLockOptions>({
  optionsInjectionToken: DISTRIBUTED_LOCK_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createLockOptions')
  .setExtras<Extras>(
    { isGlobal: true, exceptionFilter: true, names: [DEFAULT_BACKEND] },
    (definition, { isGlobal = true, exceptionFilter = true, names = [DEFAULT_BACKEND] }) => {
      const services = names.map((name) => serviceProvider(name));
      const answers = exceptionFilter === true ? {} : exceptionFilter;
      if (answers) assertAnswers(answers);
      return {
        ...definition,
        global: isGlobal,
        providers: [
          ...(definition.providers ?? []),
          {
            provide: LockServices,
            useFactory: (options: GivenBackend | DistributedLockOptions, modules: ModulesContainer) =>
              new LockServices(options, names, modules),
            inject: [DISTRIBUTED_LOCK_OPTIONS, ModulesContainer],
          },
          ...services,
          { provide: LOCK_ANSWERS, useValue: answers },
          ...(answers ? [{ provide: APP_FILTER, useClass: LockExceptionFilter }] : []),
        ],
        exports: [...services, LOCK_ANSWERS],
      };
    },
  )
  .build();

function serviceProvider(name: string): Provider {
  return {
    provide: getLockServiceToken(name),
    useFactory: (services: LockServices) => services.get(name),
    inject: [LockServices],
  };
}
