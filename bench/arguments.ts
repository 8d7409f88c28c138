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
  /** Milliseconds by which requests and their replies are delayed, as by a network. */
  readonly delayMs: number;
  readonly json: boolean;
  readonly save: boolean;
  /** Whether to save only the measured scenarios, and to keep the saved results of the others. */
  readonly again: boolean;
}

export const USAGE = `npm run bench -- [options]

  --backend name    whose locks (redis)
  --only a,b        only these scenarios, or those whose names begin so
  --who a,b         only contestants whose name contains one of these, and the floor
  --rounds 1..20    how often each is measured (3; 1 with --quick)
  --quick           shorter looks
  --delay-ms 0..100 how long each request and each reply is under way (0), with redis only
  --profile         also where the processor time of an acquisition goes
  --json            the results as JSON
  --save            writes results/<backend>.json and makes RESULTS.md anew of all that are there
  --again           the same, but only in place of the scenarios and contestants that were measured, which is said there

backends: ${BACKENDS.join(', ')}
scenarios: ${SCENARIOS.map(({ id }) => id).join(', ')}`;

/** Error in the arguments. The benchmark prints its message without a stack, and the usage. */
export class UsageError extends Error {}

/**
 * Returns the plan for command-line arguments, or `help` where the user asked for the usage.
 * @throws UsageError for an argument that is unknown or wrong
 */
export function readArguments(argv: readonly string[]): Plan | 'help' {
  const options = parseOptions(argv);
  if (options.help === true) return 'help';
  const quick = options.quick ?? false;
  const pace = quick ? PACES.quick : PACES.full;
  return {
    backend: findBackend(options.backend ?? 'redis'),
    scenarios: findScenarios(options.only),
    contestants: options.who?.split(',') ?? 'all',
    rounds: readRounds(options.rounds ?? (quick ? '1' : '3')),
    delayMs: readDelay(options['delay-ms'] ?? '0'),
    pace: { ...pace, profilesProcessor: options.profile ?? false },
    json: options.json ?? false,
    save: options.save ?? false,
    again: options.again ?? false,
  };
}

function parseOptions(argv: readonly string[]) {
  const [textOption, flagOption] = [{ type: 'string' }, { type: 'boolean' }] as const;
  const options = {
    backend: textOption,
    only: textOption,
    who: textOption,
    rounds: textOption,
    'delay-ms': textOption,
    quick: flagOption,
    profile: flagOption,
    json: flagOption,
    save: flagOption,
    again: flagOption,
    help: flagOption,
  };
  try {
    return parseArgs({ args: [...argv], options, strict: true }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function findBackend(text: string): BackendName {
  const backend = BACKENDS.find((name) => name === text);
  if (!backend) throw new UsageError(`--backend ${text}: one of ${BACKENDS.join(', ')} was expected`);
  return backend;
}

function findScenarios(text: string | undefined): readonly Scenario[] {
  const wanted = (text?.split(',') ?? ['']).flatMap((name) => {
    const exact = SCENARIOS.filter(({ id }) => id === name);
    const found = exact.length > 0 ? exact : SCENARIOS.filter(({ id }) => id.startsWith(name));
    if (found.length === 0) throw new UsageError(`--only ${name}: there is no such scenario`);
    return found;
  });
  return SCENARIOS.filter((scenario) => wanted.includes(scenario));
}

function readDelay(text: string): number {
  const delayMs = Number(text);
  if (!(Number.isInteger(delayMs) && delayMs >= 0 && delayMs <= 100)) {
    throw new UsageError(`--delay-ms ${text}: a whole number from 0 to 100 was expected, because timers count in ms`);
  }
  return delayMs;
}

function readRounds(text: string): number {
  const rounds = Number(text);
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) {
    throw new UsageError(`--rounds ${text}: a whole number from 1 to 20 was expected`);
  }
  return rounds;
}
