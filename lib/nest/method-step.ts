import type { ExecutionContext } from '@nestjs/common';
import { LockConfigurationError, type LockHandle } from '../core/index.js';
import type { LockedStep } from '../decorators/locked-step.js';
import { LockedKeys } from './locked-keys.js';
import type { Declaration } from './method-metadata.js';

/** Calls `work` under the step; `locks` are those of the call. */
export type Enclosure = <T>(locks: readonly LockHandle[], work: () => Promise<T>) => Promise<T>;

/** A step of one locked method, with its resource in the language of `@Locked`, and what it needs on each instance. */
export class MethodStep {
  readonly #resource: LockedKeys;

  /** @throws LockConfigurationError with the option `key` */
  constructor(
    private readonly step: LockedStep,
    declaration: Declaration,
    method: (...args: never[]) => unknown,
    private readonly label: string,
    /** Where an instance has what the step needs. */
    readonly property: symbol,
  ) {
    this.#resource = new LockedKeys(step.resource, declaration, method, `${step.decorator} ${label}`);
  }

  get needs(): LockedStep['needs'] {
    return this.step.needs;
  }

  /** @throws LockConfigurationError when the step can never work with what it needs */
  async start(needed: unknown): Promise<void> {
    try {
      await this.step.start?.(needed);
    } catch (error) {
      // Whatever cannot answer now may do so when the method is called, and is that call's error then.
      if (error instanceof LockConfigurationError) throw error;
    }
  }

  get advice(): string {
    return this.step.advice;
  }

  /** @throws LockConfigurationError when the step can never work for instances of `controller` */
  validate(method: object, controller: object, lockedBy: { readonly areSeveral: boolean }): void {
    if (lockedBy.areSeveral) throw this.#severalKeys();
    this.#resource.validate(method, controller);
  }

  /** @throws LockConfigurationError before anything is locked: the resource, or what the step needs, is missing */
  enclose(instance: object, args: readonly unknown[], context: ExecutionContext | undefined): Enclosure {
    const [resource = ''] = this.#resource.of(instance, args, context);
    const needed: unknown = Reflect.get(instance, this.property);
    if (needed === undefined)
      throw this.refused(`has not been given what it needs. ${this.step.advice}`, this.step.decorator);
    return (locks, work) => {
      const [lock] = locks;
      if (!lock || locks.length > 1) throw this.#severalKeys();
      return this.step.run(work, { resource, lock, needed });
    };
  }

  refused(why: string, option: string): LockConfigurationError {
    return new LockConfigurationError(`${this.step.decorator} ${this.label} ${why}`, option);
  }

  #severalKeys(): LockConfigurationError {
    return this.refused(
      'needs a @Locked with one key: the tokens of several cannot be compared with each other',
      'key',
    );
  }
}
