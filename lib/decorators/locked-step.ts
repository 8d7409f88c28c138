import { LockConfigurationError, type LockHandle, sharedState } from '../core/index.js';
import { type Declaration, labelOf } from './declaration.js';

/**
 * Work that another decorator, such as `@Fenced`, adds between the acquisition and the call of the method. The two
 * decorators may stand in either order. The step may come from a backend, and backends do not depend on Nest. Hence
 * `@Locked` parses the template of the resource and injects the provider.
 */
export interface LockedStep {
  /** Name of the decorator for messages: `@Fenced`. */
  readonly decorator: string;
  /** Template of the resource that the step works on, in the syntax of `@Locked`. */
  readonly resource: string;
  /** Token of the provider that the step needs. */
  readonly needs: string | symbol | (abstract new (...args: never[]) => object);
  /** Advice that Nest prints when it cannot inject the provider. */
  readonly advice: string;
  /**
   * Checks the configuration when the application starts.
   * @throws LockConfigurationError the step can never work; another error: the check has no result yet
   */
  start?(provider: unknown): Promise<void>;
  /** Runs the step, and `work` inside the step. `work` calls the method. */
  run<T>(work: () => Promise<T>, input: StepInput): Promise<T>;
}

/** Resource, lock and provider of one call. */
export interface StepInput {
  readonly resource: string;
  /** Lock of the call. A method with a step locks one key only. */
  readonly lock: LockHandle;
  /** Provider by the token `needs`. */
  readonly provider: unknown;
}

/** Step of one method, and the listener of its `@Locked`. Either decorator may run first. */
interface StepSlot {
  step?: LockedStep;
  /** Listener of the method's `@Locked`; `undefined` while the method has no `@Locked`. */
  onStep?: (step: LockedStep) => void;
}

const slots = sharedState('steps', () => new WeakMap<object, Map<string | symbol, StepSlot>>());

/**
 * Adds a step to a method; the step's own decorator calls it. Returns a function that tells whether the method has `@Locked`.
 * @throws LockConfigurationError the method has a step already
 */
export function addLockedStep(declaration: Declaration, step: LockedStep): () => boolean {
  const slot = getOrCreateSlot(declaration);
  if (slot.step) {
    const label = labelOf(declaration);
    throw new LockConfigurationError(`${label} has two of ${slot.step.decorator} and ${step.decorator}`, 'method');
  }
  slot.step = step;
  slot.onStep?.(step);
  return () => slot.onStep !== undefined;
}

/** Calls `onStep` with the method's step, now or when the step is added. `@Locked` registers itself by this call. */
export function onLockedStep(declaration: Declaration, onStep: (step: LockedStep) => void): void {
  const slot = getOrCreateSlot(declaration);
  slot.onStep = onStep;
  if (slot.step) onStep(slot.step);
}

/** @throws LockConfigurationError when `prototype` has or inherits a method with a step and without `@Locked` */
export function assertStepsLocked(prototype: object): void {
  for (let target: object | null = prototype; target; target = Object.getPrototypeOf(target)) {
    for (const [name, { step, onStep }] of slots.get(target) ?? []) {
      if (step && !onStep) throw createUnlockedStepError(step.decorator, { target, name });
    }
  }
}

export function createUnlockedStepError(decorator: string, declaration: Declaration): LockConfigurationError {
  const label = labelOf(declaration);
  return new LockConfigurationError(
    `${decorator} ${label} has no @Locked beside it, and never runs without one`,
    'method',
  );
}

function getOrCreateSlot({ target, name }: Declaration): StepSlot {
  const slotsByName = slots.get(target) ?? new Map<string | symbol, StepSlot>();
  slots.set(target, slotsByName);
  const slot = slotsByName.get(name) ?? {};
  slotsByName.set(name, slot);
  return slot;
}
