/** All that can happen in a world of states. */
export interface Model<State> {
  readonly initial: State;
  /** Equal for states that nothing tells apart. */
  key(state: State): string;
  /** A state with that key. */
  parse(key: string): State;
  steps(state: State, visit: Visit<State>): void;
  /** A few of them, or none, picked with `random`, which gives whole numbers below its argument. */
  someSteps(state: State, visit: Visit<State>, random: (below: number) => number): void;
}

/** `violation`: what is wrong once this step is done. */
export type Visit<State> = (next: State, describe: () => string, violation?: string) => void;

export interface Verdict {
  readonly states: number;
  readonly transitions: number;
  /** The violation, and the shortest way to it. */
  readonly violation?: string;
  readonly trace?: readonly string[];
}

/** Goes through all states that can be reached, nearest first, until one is wrong. */
export function search<State>(model: Model<State>): Verdict {
  const keys = [model.key(model.initial)];
  const places = new Map(keys.map((key, place) => [key, place]));
  const cameFrom = [0];
  const wrong: { readonly key: string; readonly violation: string }[] = [];
  let transitions = 0;
  let place = 0;
  const visit: Visit<State> = (next, _describe, violation) => {
    transitions += 1;
    const key = model.key(next);
    if (!places.has(key)) {
      places.set(key, keys.length);
      keys.push(key);
      cameFrom.push(place);
    }
    if (violation !== undefined) wrong.push({ key, violation });
  };
  for (; place < keys.length && wrong.length === 0; place += 1) model.steps(model.parse(keys[place] ?? ''), visit);
  const [first] = wrong;
  if (!first) return { states: keys.length, transitions };
  const way = [first.key];
  for (let at = place - 1; at > 0; at = cameFrom[at] ?? 0) way.unshift(keys[at] ?? '');
  return { states: keys.length, transitions, violation: first.violation, trace: retrace(model, way) };
}

/** The steps along `way` in words, with the same names for the same things from the first to the last. */
function retrace<State>(model: Model<State>, way: readonly string[]): string[] {
  let state = model.initial;
  return way.map((key) => {
    let text: string | undefined;
    let reached = state;
    model.steps(state, (next, describe, violation) => {
      if (text !== undefined || model.key(next) !== key) return;
      text = describe() + (violation === undefined ? '' : `: ${violation}`);
      reached = next;
    });
    state = reached;
    return text ?? 'a step that cannot be told';
  });
}

/** Walks at random; stops at the first wrong state. */
export function wander<State>(
  model: Model<State>,
  {
    walks,
    steps,
    random,
  }: { readonly walks: number; readonly steps: number; readonly random: (below: number) => number },
): Verdict {
  const seen = new Set<string>();
  let transitions = 0;
  for (let walk = 0; walk < walks; walk += 1) {
    let state = model.initial;
    const trace: string[] = [];
    for (let step = 0; step < steps; step += 1) {
      const next = oneOf(model, state, random);
      if (!next) continue;
      transitions += 1;
      trace.push(next.describe());
      if (next.violation !== undefined) return { states: seen.size, transitions, violation: next.violation, trace };
      ({ state } = next);
      seen.add(model.key(state));
    }
  }
  return { states: seen.size, transitions };
}

interface Choice<State> {
  readonly state: State;
  readonly describe: () => string;
  readonly violation: string | undefined;
}

function oneOf<State>(model: Model<State>, from: State, random: (below: number) => number): Choice<State> | undefined {
  let chosen: Choice<State> | undefined;
  let count = 0;
  const consider: Visit<State> = (state, describe, violation) => {
    count += 1;
    if (random(count) === 0) chosen = { state, describe, violation };
  };
  model.someSteps(from, consider, random);
  return chosen;
}
