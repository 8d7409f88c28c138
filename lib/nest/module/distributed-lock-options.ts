import type { ConfigurableModuleAsyncOptions, LoggerService } from '@nestjs/common';
import {
  type GivenBackend,
  isGivenBackend,
  LockConfigurationError,
  type LockServiceOptions,
} from '../../core/index.js';
import { DEFAULT_BACKEND } from '../inject-lock-service.decorator.js';
import type { LockAnswers } from '../requests/lock-answers.js';

/** Backends by name. */
export type NamedBackends = Readonly<Record<string, GivenBackend>> & { readonly default: GivenBackend };

export interface ModuleOptions extends LockServiceOptions {
  /** Logger for the events of locks, or `false` for none. @default a Nest logger with the context `LockService` */
  logger?: LoggerService | false;
}

/** One backend, or several by name, and options that apply to each of them. @interface */
export type DistributedLockOptions = ModuleOptions &
  ({ backend: GivenBackend; backends?: never } | { backends: NamedBackends; backend?: never });

/** Interface of a class that creates the options, given as `useClass` or `useExisting`. */
export interface DistributedLockOptionsFactory {
  createLockOptions(): GivenBackend | DistributedLockOptions | Promise<GivenBackend | DistributedLockOptions>;
}

export interface DistributedLockExtras {
  /** Whether other modules can inject the services without importing `DistributedLockModule`. @default true */
  isGlobal?: boolean;
  /**
   * Whether lock errors that leave a handler become exceptions of its transport, such as `HttpException`. An object
   * changes status and `Retry-After` by the error's code: `{ LOCK_TIMEOUT: { status: 409, retryAfterSeconds: 3 } }`.
   * A filter whose `@Catch` names the class of a lock error gets the lock error instead of the exception.
   * @default true
   */
  exceptionFilter?: boolean | LockAnswers;
}

/**
 * Token of the module's options: the argument of `forRoot`, or the result of the factory in `forRootAsync`. Tests
 * replace them: `overrideProvider(DISTRIBUTED_LOCK_OPTIONS).useValue(memory())` puts one backend in the place of all
 * named ones. The real backends are then neither opened nor started.
 */
export const DISTRIBUTED_LOCK_OPTIONS = Symbol.for('nestjs-distributed-lock/options of DistributedLockModule');

type AsyncOptions = ConfigurableModuleAsyncOptions<GivenBackend | DistributedLockOptions, 'createLockOptions'>;

export interface DistributedLockAsyncOptions extends AsyncOptions, DistributedLockExtras {
  /** Names of the factory's backends. @default ['default'] */
  backends?: readonly string[];
}

/**
 * @param names names that share the backend where the options have `backend`; unused where they have `backends`
 * @throws LockConfigurationError
 */
export function resolveModuleOptions(
  input: GivenBackend | DistributedLockOptions,
  names: readonly string[] = [DEFAULT_BACKEND],
): {
  readonly backends: NamedBackends;
  readonly serviceOptions: LockServiceOptions;
  readonly logger: LoggerService | false | undefined;
  /** Whether all names share one backend. Each name then needs a namespace of its own. */
  readonly sharesBackend: boolean;
} {
  const { backend, backends, logger, ...serviceOptions }: ModuleOptions & { backend?: unknown; backends?: unknown } =
    isGivenBackend(input) ? { backend: input } : { ...input };
  if ((backend === undefined) === (backends === undefined)) {
    throw new LockConfigurationError(
      'DistributedLockModule needs either a backend, such as memory(), or backends',
      'backend',
    );
  }
  const validBackends: Record<string, GivenBackend> = {};
  const backendsByName = backends ?? Object.fromEntries(names.map((name) => [name, backend]));
  for (const [name, value] of Object.entries(backendsByName)) {
    if (!isGivenBackend(value)) {
      throw new LockConfigurationError(`the backend "${name}" of DistributedLockModule is no LockBackend`, 'backend');
    }
    validBackends[name] = value;
  }
  const defaultBackend = validBackends[DEFAULT_BACKEND];
  if (!defaultBackend) {
    throw new LockConfigurationError(`one of the backends must be called "${DEFAULT_BACKEND}"`, 'backends');
  }
  return {
    backends: { ...validBackends, default: defaultBackend },
    serviceOptions,
    logger,
    sharesBackend: backends === undefined,
  };
}
