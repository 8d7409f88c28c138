import { LockConfigurationError, type LockHandle, sharedState } from '../core/index.js';
import { type Declaration, getMethodLabel } from './declaration.js';

/**
 * Work that another decorator, such as `@Fenced`, adds between the acquisition and the call of the method. `@Locked`
 * resolves the resource and injects the provider, because the other decorator does not depend on Nest.
 */
export interface LockedStep {
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
  /** Runs the step. The step calls `work`, which calls the method. */
  run<T>(work: () => Promise<T>, input: StepInput): Promise<T>;
}

export interface StepInput {
  readonly resource: string;
  readonly lock: LockHandle;
  readonly provider: unknown;
}

/** Step of one method, and the listener of its `@Locked`. Either decorator may run first. */
interface StepRegistration {
  step?: LockedStep;
  /** Listener of the method's `@Locked`; `undefined` while the method has no `@Locked`. */
  onStep?: (step: LockedStep) => void;
}

const registrations = sharedState('steps', () => new WeakMap<object, Map<string | symbol, StepRegistration>>());

/**
 * Adds a step to the method. Returns a function that tells whether the method has `@Locked`.
 * @throws LockConfigurationError the method has a step already
 */
export function addLockedStep(declaration: Declaration, step: LockedStep): () => boolean {
  const registration = getOrCreateRegistration(declaration);
  if (registration.step) {
    const label = getMethodLabel(declaration);
    throw new LockConfigurationError(
      `${label} has two of ${registration.step.decorator} and ${step.decorator}`,
      'method',
    );
  }
  registration.step = step;
  registration.onStep?.(step);
  return () => registration.onStep !== undefined;
}

/** Calls `onStep` with the step, now or when it is added. Records that the method has `@Locked`. */
export function onLockedStep(declaration: Declaration, onStep: (step: LockedStep) => void): void {
  const registration = getOrCreateRegistration(declaration);
  registration.onStep = onStep;
  if (registration.step) onStep(registration.step);
}

/** @throws LockConfigurationError when `prototype` has or inherits a method with a step and without `@Locked` */
export function assertStepsLocked(prototype: object): void {
  for (let target: object | null = prototype; target; target = Object.getPrototypeOf(target)) {
    for (const [name, { step, onStep }] of registrations.get(target) ?? []) {
      if (step && !onStep) throw createUnlockedStepError(step.decorator, { target, name });
    }
  }
}

export function createUnlockedStepError(decorator: string, declaration: Declaration): LockConfigurationError {
  const label = getMethodLabel(declaration);
  return new LockConfigurationError(
    `${decorator} ${label} has no @Locked beside it, and never runs without one`,
    'method',
  );
}

function getOrCreateRegistration({ target, name }: Declaration): StepRegistration {
  const registrationsByName = registrations.get(target) ?? new Map<string | symbol, StepRegistration>();
  registrations.set(target, registrationsByName);
  const registration = registrationsByName.get(name) ?? {};
  registrationsByName.set(name, registration);
  return registration;
}
