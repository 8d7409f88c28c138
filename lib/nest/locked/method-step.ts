import type { ExecutionContext } from '@nestjs/common';
import { isLockError, LockConfigurationError, type LockHandle } from '../../core/index.js';
import { type Declaration, labelOf, type Method } from '../../decorators/declaration.js';
import type { LockedStep } from '../../decorators/locked-step.js';
import { LockedKeys } from '../keys/locked-keys.js';

/** Calls `work` under the step; `locks` are those of the call. */
export type Enclosure = <T>(locks: readonly LockHandle[], work: () => Promise<T>) => Promise<T>;

/** A step of one locked method, with its resource in the language of `@Locked`. */
export class MethodStep {
  /** An instance keeps under it the provider that the step needs. */
  readonly property: symbol;
  readonly #resource: LockedKeys;

  constructor(
    readonly step: LockedStep,
    private readonly declaration: Declaration,
    method: Method,
  ) {
    this.property = Symbol(step.advice);
    this.#resource = new LockedKeys(step.resource, declaration, method, this.#label);
  }

  /** @throws LockConfigurationError when the step can never work with what it needs */
  async start(needed: unknown): Promise<void> {
    try {
      await this.step.start?.(needed);
    } catch (error) {
      // A server that does not answer now may do so when the method is called. That call has the error otherwise.
      if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
    }
  }

  /** @throws LockConfigurationError when the step can never work for instances of `controller` */
  validate(method: object, controller: object, lockedBy: { readonly areSeveral: boolean }): void {
    if (lockedBy.areSeveral) throw this.#severalKeys();
    this.#resource.validate(method, controller);
  }

  /** @throws LockConfigurationError before anything is locked: the resource, or what the step needs, is missing */
  enclose(instance: object, args: readonly unknown[], context: ExecutionContext | undefined): Enclosure {
    const [found] = this.#resource.of(instance, args, context);
    const resource = typeof found === 'string' ? found : '';
    const needed: unknown = Reflect.get(instance, this.property);
    const { advice, decorator } = this.step;
    if (needed === undefined) throw this.refused(`has not been given what it needs. ${advice}`, decorator);
    return (locks, work) => {
      const [lock] = locks;
      if (!lock || locks.length > 1) throw this.#severalKeys();
      return this.step.run(work, { resource, lock, needed });
    };
  }

  refused(why: string, option: string): LockConfigurationError {
    return new LockConfigurationError(`${this.#label} ${why}`, option);
  }

  get #label(): string {
    return `${this.step.decorator} ${labelOf(this.declaration)}`;
  }

  #severalKeys(): LockConfigurationError {
    const why = 'needs a @Locked with one key: the tokens of several cannot be compared with each other';
    return this.refused(why, 'key');
  }
}
