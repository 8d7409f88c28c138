import type { LossWindow } from './history-checker.js';
import type { Operation } from './history.js';
import { wantedBy } from './wanted.js';

interface State {
  readonly holders: readonly string[];
  readonly token: bigint;
}

interface Step {
  /** It takes effect at one instant between these two. */
  readonly from: number;
  readonly to: number;
  /** May be left out: its outcome is unknown. */
  readonly optional: boolean;
  readonly repeatable: boolean;
  /** The state afterwards, or undefined when the step is impossible. */
  readonly apply: (state: State) => State | undefined;
}

/**
 * Tries all orders of a small history of one key, for one that a lock could have produced (after Wing & Gong 1993): slow, and
 * too simple to be wrong. The checker is compared with it.
 */
export function isLinearizable(history: readonly Operation[], fenced: boolean, losses: readonly LossWindow[]): boolean {
  const steps = history.map((operation) =>
    operation.op === 'acquire' ? acquireStep(operation, fenced) : releaseStep(operation),
  );
  return search([...steps, ...losses.map(lossStep)], { holders: [], token: -1n }, 0);
}

/** Each step in turn is put at the earliest instant that is left to it: if that does not fit, nothing later does. */
function search(steps: readonly Step[], state: State, now: number): boolean {
  const due = steps.filter(({ optional }) => !optional);
  if (due.length === 0) return true;
  if (due.some(({ to }) => to < now)) return false;
  return steps.some((step) => {
    const at = Math.max(now, step.from);
    const next = at <= step.to ? step.apply(state) : undefined;
    if (next === undefined) return false;
    return search(step.repeatable ? steps : steps.filter((other) => other !== step), next, at);
  });
}

function acquireStep({ owner, token = 0n, ...times }: Operation, fenced: boolean): Step {
  return {
    ...stepTimes(times),
    apply: ({ holders, token: last }) =>
      fit([...holders, owner], 0) && (!fenced || token > last) ? { holders: [...holders, owner], token } : undefined,
  };
}

function releaseStep({ owner, ...times }: Operation): Step {
  return {
    ...stepTimes(times),
    apply: (state) => ({ ...state, holders: state.holders.filter((one) => one !== owner) }),
  };
}

function stepTimes({ inv, ok }: Pick<Operation, 'inv' | 'ok'>): Omit<Step, 'apply'> {
  return {
    from: Number(inv),
    to: ok === undefined ? Infinity : Number(ok),
    optional: ok === undefined,
    repeatable: false,
  };
}

function lossStep({ owner, from, to }: LossWindow): Step {
  return {
    from: Number(from),
    to: to === undefined ? Infinity : Number(to),
    optional: true,
    repeatable: true,
    apply: (state) => {
      const left = owner === undefined ? [] : state.holders.filter((one) => one !== owner);
      return left.length < state.holders.length ? { ...state, holders: left } : undefined;
    },
  };
}

/** Tries all orders: in one of them, each fits behind those before it. */
function fit(owners: readonly string[], taken: number): boolean {
  if (owners.length === 0) return true;
  return owners.some((owner, place) => {
    const { permits, of } = wantedBy(owner);
    return taken + permits <= of && fit(owners.toSpliced(place, 1), taken + permits);
  });
}
