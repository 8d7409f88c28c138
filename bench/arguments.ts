import { parseArgs } from 'node:util';
import { type BackendName, BACKENDS } from './competitions.js';
import { SCENARIOS } from './scenarios/index.js';
import { type Pace, PACES, type Scenario } from './scenarios/scenario.js';

export interface Plan {
  readonly backend: BackendName;
  readonly scenarios: readonly Scenario[];
  readonly contestants: readonly string[] | 'all';
  readonly rounds: number;
  readonly pace: Pace;
  readonly json: boolean;
  readonly save: boolean;
  /** Saves as well, but keeps what was saved of other scenarios. */
  readonly again: boolean;
}

export const USAGE = `npm run bench -- [options]

  --backend name    whose locks (redis)
  --only a,b        only these scenarios, or those whose names begin so
  --who a,b         only contestants whose name contains one of these, and the floor
  --rounds 1..20    how often each is measured (3; 1 with --quick)
  --quick           shorter looks
  --profile         also where the processor time of an acquisition goes
  --json            the results as JSON
  --save            writes results/<backend>.json and makes RESULTS.md anew of all that are there
  --again           the same, but only in place of the scenarios that were measured, which is said there

backends: ${BACKENDS.join(', ')}
scenarios: ${SCENARIOS.map(({ id }) => id).join(', ')}`;

/** Wrong arguments: shown without a stack, with the usage. */
export class UsageError extends Error {}

/** @throws UsageError */
export function readArguments(argv: readonly string[]): Plan | 'help' {
  const given = parse(argv);
  if (given.help === true) return 'help';
  const quick = given.quick ?? false;
  const pace = quick ? PACES.quick : PACES.full;
  return {
    backend: backendOf(given.backend ?? 'redis'),
    scenarios: scenariosOf(given.only),
    contestants: given.who?.split(',') ?? 'all',
    rounds: roundsOf(given.rounds ?? (quick ? '1' : '3')),
    pace: { ...pace, profiles: given.profile ?? false },
    json: given.json ?? false,
    save: given.save ?? false,
    again: given.again ?? false,
  };
}

function parse(argv: readonly string[]) {
  const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const;
  const options = {
    backend: text,
    only: text,
    who: text,
    rounds: text,
    quick: flag,
    profile: flag,
    json: flag,
    save: flag,
    again: flag,
    help: flag,
  };
  try {
    return parseArgs({ args: [...argv], options, strict: true }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function backendOf(given: string): BackendName {
  const backend = BACKENDS.find((name) => name === given);
  if (!backend) throw new UsageError(`--backend ${given}: one of ${BACKENDS.join(', ')} was expected`);
  return backend;
}

function scenariosOf(given: string | undefined): readonly Scenario[] {
  const wanted = (given?.split(',') ?? ['']).flatMap((name) => {
    const exact = SCENARIOS.filter(({ id }) => id === name);
    const found = exact.length > 0 ? exact : SCENARIOS.filter(({ id }) => id.startsWith(name));
    if (found.length === 0) throw new UsageError(`--only ${name}: there is no such scenario`);
    return found;
  });
  return SCENARIOS.filter((scenario) => wanted.includes(scenario));
}

function roundsOf(given: string): number {
  const rounds = Number(given);
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) {
    throw new UsageError(`--rounds ${given}: a whole number from 1 to 20 was expected`);
  }
  return rounds;
}
