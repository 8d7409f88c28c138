import { LockConfigurationError, type LockHandle, sharedState } from '../core/index.js';
import { type Declaration, labelOf } from './declaration.js';

/**
 * Work that another decorator adds between taking the lock and calling the method, in whichever order the two are
 * written. Backends know no Nest. Hence the key's language and the injection come from `@Locked`.
 */
export interface LockedStep {
  /** For messages: `@Fenced`. */
  readonly decorator: string;
  /** Its subject, written as a key of `@Locked` is. */
  readonly resource: string;
  /** The token of the provider that it needs. */
  readonly needs: string | symbol | (abstract new (...args: never[]) => object);
  /** Nest prints it when it cannot inject the provider. */
  readonly advice: string;
  /**
   * Looks for mistakes when the application starts.
   * @throws LockConfigurationError it can never work; anything else: there is no answer yet
   */
  start?(needed: unknown): Promise<void>;
  /** `work` is the method. */
  run<T>(work: () => Promise<T>, given: StepInput): Promise<T>;
}

export interface StepInput {
  readonly resource: string;
  /** The one lock of the call. */
  readonly lock: LockHandle;
  /** The provider of `needs`. */
  readonly needed: unknown;
}

interface Slot {
  step?: LockedStep;
  adopt?: (step: LockedStep) => void;
}

const slots = sharedState('steps', () => new WeakMap<object, Map<string | symbol, Slot>>());

/**
 * For the step's own decorator. The function that it returns says whether the method has `@Locked`, too.
 * @throws LockConfigurationError the method has one already
 */
export function addLockedStep(declaration: Declaration, step: LockedStep): () => boolean {
  const slot = slotOf(declaration);
  if (slot.step) {
    const label = labelOf(declaration);
    throw new LockConfigurationError(`${label} has two of ${slot.step.decorator} and ${step.decorator}`, 'method');
  }
  slot.step = step;
  slot.adopt?.(step);
  return () => slot.adopt !== undefined;
}

/** For `@Locked`. Calls `adopt` with the method's step, now or when it is added. */
export function onLockedStep(declaration: Declaration, adopt: (step: LockedStep) => void): void {
  const slot = slotOf(declaration);
  slot.adopt = adopt;
  if (slot.step) adopt(slot.step);
}

/** @throws LockConfigurationError when `prototype` has a method with a step, and no `@Locked` beside it */
export function assertStepsLocked(prototype: object): void {
  for (let target: object | null = prototype; target; target = Object.getPrototypeOf(target)) {
    for (const [name, { step, adopt }] of slots.get(target) ?? []) {
      if (step && !adopt) throw withoutLock(step.decorator, { target, name });
    }
  }
}

export function withoutLock(decorator: string, declaration: Declaration): LockConfigurationError {
  const label = labelOf(declaration);
  return new LockConfigurationError(
    `${decorator} ${label} has no @Locked beside it, and never runs without one`,
    'method',
  );
}

function slotOf({ target, name }: Declaration): Slot {
  const ofTarget = slots.get(target) ?? new Map<string | symbol, Slot>();
  slots.set(target, ofTarget);
  const slot = ofTarget.get(name) ?? {};
  ofTarget.set(name, slot);
  return slot;
}
