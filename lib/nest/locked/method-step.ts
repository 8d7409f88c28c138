import type { ExecutionContext } from '@nestjs/common';
import { isLockError, LockConfigurationError, type LockHandle } from '../../core/index.js';
import { type Declaration, getMethodLabel, type Method } from '../../decorators/declaration.js';
import type { LockedStep } from '../../decorators/locked-step.js';
import { LockedKeys } from '../keys/locked-keys.js';

export type StepRunner = <T>(locks: readonly LockHandle[], work: () => Promise<T>) => Promise<T>;

export class MethodStep {
  readonly providerProperty: symbol;
  readonly #resourceKeys: LockedKeys;

  constructor(
    readonly step: LockedStep,
    private readonly declaration: Declaration,
    method: Method,
  ) {
    this.providerProperty = Symbol(step.advice);
    this.#resourceKeys = new LockedKeys(step.resource, declaration, method, this.#label);
  }

  /** @throws LockConfigurationError when the step can never work with this provider */
  async start(provider: unknown): Promise<void> {
    try {
      await this.step.start?.(provider);
    } catch (error) {
      // A server that does not answer yet may answer later. A call of the method fails with the error until then.
      if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
    }
  }

  /** @throws LockConfigurationError when the step can never work for instances of `classRef` */
  validate(method: object, classRef: object, lockKeys: { readonly hasSeveralTemplates: boolean }): void {
    if (lockKeys.hasSeveralTemplates) throw this.#createSeveralKeysError();
    this.#resourceKeys.validate(method, classRef);
  }

  /** @throws LockConfigurationError when the resource or the provider is missing */
  prepare(instance: object, args: readonly unknown[], context: ExecutionContext | undefined): StepRunner {
    const [key] = this.#resourceKeys.resolve(instance, args, context);
    const resource = typeof key === 'string' ? key : '';
    const provider: unknown = Reflect.get(instance, this.providerProperty);
    const { advice, decorator } = this.step;
    if (provider === undefined) throw this.createStepError(`has not been given what it needs. ${advice}`, decorator);
    return (locks, work) => {
      const [lock] = locks;
      if (!lock || locks.length > 1) throw this.#createSeveralKeysError();
      return this.step.run(work, { resource, lock, provider });
    };
  }

  createStepError(reason: string, option: string): LockConfigurationError {
    return new LockConfigurationError(`${this.#label} ${reason}`, option);
  }

  get #label(): string {
    return `${this.step.decorator} ${getMethodLabel(this.declaration)}`;
  }

  #createSeveralKeysError(): LockConfigurationError {
    const reason = 'needs a @Locked with one key: the tokens of several cannot be compared with each other';
    return this.createStepError(reason, 'key');
  }
}
