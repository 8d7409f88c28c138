import type { ConfigurableModuleAsyncOptions, LoggerService } from '@nestjs/common';
import { type GivenBackend, isBackend, LockConfigurationError, type LockServiceOptions } from '../../core/index.js';
import { DEFAULT_BACKEND } from '../inject-lock-service.decorator.js';
import type { LockAnswers } from '../requests/lock-answers.js';

export type NamedBackends = Readonly<Record<string, GivenBackend>> & { readonly default: GivenBackend };

export interface ModuleOptions extends LockServiceOptions {
  /** The logger of a `LockLogger`, or `false` for none. @default a Nest logger with the context `LockService` */
  logger?: LoggerService | false;
}

/** One backend, or several by name. The other options hold for each of them. @interface */
export type DistributedLockOptions = ModuleOptions &
  ({ backend: GivenBackend; backends?: never } | { backends: NamedBackends; backend?: never });

/** For a class given as `useClass` or `useExisting`. */
export interface DistributedLockOptionsFactory {
  createLockOptions(): GivenBackend | DistributedLockOptions | Promise<GivenBackend | DistributedLockOptions>;
}

export interface DistributedLockExtras {
  /** Whether other modules find the services without importing this one. @default true */
  isGlobal?: boolean;
  /**
   * Whether lock errors that leave a handler become exceptions of its transport, such as `HttpException`. An object
   * changes status and `Retry-After` by the error's code: `{ LOCK_TIMEOUT: { status: 409, retryAfterSeconds: 3 } }`.
   * An error that one of your filters names reaches that filter as it is.
   * @default true
   */
  exceptionFilter?: boolean | LockAnswers;
}

/**
 * The token of what `forRoot` was given, or the factory of `forRootAsync` returned. Tests replace it:
 * `overrideProvider(DISTRIBUTED_LOCK_OPTIONS).useValue(memory())`, which stands for all backends of the module. The real
 * ones are then neither opened nor started.
 */
export const DISTRIBUTED_LOCK_OPTIONS = Symbol.for('nestjs-distributed-lock/options of DistributedLockModule');

type AsyncOptions = ConfigurableModuleAsyncOptions<GivenBackend | DistributedLockOptions, 'createLockOptions'>;

export interface DistributedLockAsyncOptions extends AsyncOptions, DistributedLockExtras {
  /** The names of the factory's backends. @default ['default'] */
  backends?: readonly string[];
}

/**
 * The backends by name, and the other options. A backend alone stands for all `names`.
 * @throws LockConfigurationError
 */
export function resolveModuleOptions(
  given: GivenBackend | DistributedLockOptions,
  names: readonly string[] = [DEFAULT_BACKEND],
): {
  readonly backends: NamedBackends;
  readonly options: LockServiceOptions;
  readonly logger: LoggerService | false | undefined;
  /** Whether one backend stands for all names. Each has keys of its own then, as it would with several. */
  readonly isShared: boolean;
} {
  const { backend, backends, logger, ...options }: ModuleOptions & { backend?: unknown; backends?: unknown } =
    isBackend(given) ? { backend: given } : { ...given };
  if ((backend === undefined) === (backends === undefined)) {
    throw new LockConfigurationError(
      'DistributedLockModule needs either a backend, such as memory(), or backends',
      'backend',
    );
  }
  const named: Record<string, GivenBackend> = {};
  const found = backends ?? Object.fromEntries(names.map((name) => [name, backend]));
  for (const [name, value] of Object.entries(found)) {
    if (!isBackend(value)) {
      throw new LockConfigurationError(`the backend "${name}" of DistributedLockModule is no LockBackend`, 'backend');
    }
    named[name] = value;
  }
  const fallback = named[DEFAULT_BACKEND];
  if (!fallback) {
    throw new LockConfigurationError(`one of the backends must be called "${DEFAULT_BACKEND}"`, 'backends');
  }
  return { backends: { ...named, default: fallback }, options, logger, isShared: backends === undefined };
}
