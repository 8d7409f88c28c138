import type { LoggerService } from '@nestjs/common';
import { type GivenBackend, isBackend, LockConfigurationError, type LockServiceOptions } from '../core/index.js';
import { DEFAULT_BACKEND } from './inject-lock-service.decorator.js';

export type NamedBackends = Readonly<Record<string, GivenBackend>> & { readonly default: GivenBackend };

export interface ModuleOptions extends LockServiceOptions {
  /** Where the module logs, or `false`: see `LockLogger`. @default a Nest logger with the context `LockService` */
  logger?: LoggerService | false;
}

/** One backend, or several by name; what else a `LockService` takes holds for each of them. */
export type DistributedLockOptions = ModuleOptions &
  ({ backend: GivenBackend; backends?: never } | { backends: NamedBackends; backend?: never });

/** What a class given as `useClass` or `useExisting` implements. */
export interface DistributedLockOptionsFactory {
  createLockOptions(): GivenBackend | DistributedLockOptions | Promise<GivenBackend | DistributedLockOptions>;
}

/**
 * The backends by name, and the rest.
 * @throws LockConfigurationError
 */
export function resolveModuleOptions(given: GivenBackend | DistributedLockOptions): {
  readonly backends: NamedBackends;
  readonly options: LockServiceOptions;
  readonly logger: LoggerService | false | undefined;
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
  for (const [name, value] of Object.entries(backends ?? { [DEFAULT_BACKEND]: backend })) {
    if (!isBackend(value)) {
      throw new LockConfigurationError(`the backend "${name}" of DistributedLockModule is no LockBackend`, 'backend');
    }
    named[name] = value;
  }
  const fallback = named[DEFAULT_BACKEND];
  if (!fallback) {
    throw new LockConfigurationError(`one of the backends must be called "${DEFAULT_BACKEND}"`, 'backends');
  }
  return { backends: { ...named, default: fallback }, options, logger };
}
