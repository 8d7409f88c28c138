import { ConfigurableModuleBuilder, type Provider } from '@nestjs/common';
import { APP_FILTER, ModulesContainer } from '@nestjs/core';
import type { DistributedLockOptions, GivenBackend } from './distributed-lock-options.js';
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
  /** `forRootAsync` only: what the factory will call its backends. @default ['default'] */
  names?: readonly string[];
}

const OPTIONS = Symbol('options of DistributedLockModule');

export const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<GivenBackend | DistributedLockOptions>({
  optionsInjectionToken: OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createLockOptions')
  .setExtras<DistributedLockExtras>(
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
            inject: [OPTIONS, ModulesContainer],
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
