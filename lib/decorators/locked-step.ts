import { LockConfigurationError, type LockHandle } from '../core/index.js';

/** The prototype that a method is declared on, and its name. */
interface Declaration {
  readonly target: object;
  readonly name: string | symbol;
}

/**
 * What another decorator has `@Locked` do between taking the lock and calling the method, in whichever order the two are
 * written. Backends know no Nest: so the key's language and the injection come from `@Locked`.
 */
export interface LockedStep {
  /** For messages: `@Fenced`. */
  readonly decorator: string;
  /** What it concerns, written as a key of `@Locked` is. */
  readonly resource: string;
  /** What it needs of the application, by the token of its provider. */
  readonly needs: string | symbol | (abstract new (...args: never[]) => object);
  /** What Nest prints when it cannot inject that. */
  readonly advice: string;
  /**
   * Looks, when the application starts, for what can never work.
   * @throws LockConfigurationError; anything else when there is no answer, which may pass
   */
  start?(needed: unknown): Promise<void>;
  /** `work` is the method. */
  run<T>(work: () => Promise<T>, given: StepInput): Promise<T>;
}

export interface StepInput {
  readonly resource: string;
  /** The one lock of the call. */
  readonly lock: LockHandle;
  /** What `needs` asked for. */
  readonly needed: unknown;
}

interface Place {
  step?: LockedStep;
  adopt?: (step: LockedStep) => void;
}

const places = new WeakMap<object, Map<string | symbol, Place>>();

/**
 * For the step's own decorator. What it returns says whether a `@Locked` stands beside it.
 * @throws LockConfigurationError the method has one already
 */
export function addLockedStep(declaration: Declaration, step: LockedStep): () => boolean {
  const place = placeOf(declaration);
  if (place.step) {
    const label = labelOf(declaration);
    throw new LockConfigurationError(`${label} has two of ${place.step.decorator} and ${step.decorator}`, 'method');
  }
  place.step = step;
  place.adopt?.(step);
  return () => place.adopt !== undefined;
}

/** For `@Locked`: `adopt` is told of the method's step, now or when it is added. */
export function adoptLockedStep(declaration: Declaration, adopt: (step: LockedStep) => void): void {
  const place = placeOf(declaration);
  place.adopt = adopt;
  if (place.step) adopt(place.step);
}

/** @throws LockConfigurationError when `prototype` declares or inherits a method with a step, and no `@Locked` beside it */
export function assertStepsLocked(prototype: object): void {
  for (let target: object | null = prototype; target; target = Object.getPrototypeOf(target)) {
    for (const [name, { step, adopt }] of places.get(target) ?? []) {
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

function placeOf({ target, name }: Declaration): Place {
  const ofTarget = places.get(target) ?? new Map<string | symbol, Place>();
  places.set(target, ofTarget);
  const place = ofTarget.get(name) ?? {};
  ofTarget.set(name, place);
  return place;
}

function labelOf({ target, name }: Declaration): string {
  return `${target.constructor.name}.${String(name)}`;
}
