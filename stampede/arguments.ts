import { parseArgs } from 'node:util';
import { BACKEND_NAMES, type BackendName } from './shop-process/lock-backends.js';

/** Ways to buy, by the names of their routes. */
export const WAYS = ['locked', 'with-lock', 'by-service', 'without-fence', 'optimistic'] as const;
export type Way = (typeof WAYS)[number];

/** Options of one stampede. */
export interface Plan {
  readonly backend: BackendName;
  readonly via: Way;
  readonly processes: number;
  readonly buyers: number;
  readonly stock: number;
  /** Whether to end a process with SIGKILL while it has the lock. */
  readonly kill: boolean;
  /** Whether to stop a process with SIGSTOP while it has the lock. It goes on once others have sold. */
  readonly freeze: boolean;
  /** Number of servers with the locks that are killed on the way. */
  readonly killNodes: number;
  readonly unsafe: boolean;
  readonly json: boolean;
}

/** Number of servers that may be killed. A majority of Redlock's five has to stay; the others have one replica. */
const MAX_KILLED_NODES: Readonly<Partial<Record<BackendName, number>>> = {
  redlock: 2,
  'redis-sentinel': 1,
  'redis-cluster': 1,
};

export const USAGE = `npm run stampede -- [options]

  --backend name      where the locks live (sqlite): on the server of its variable, else on one of its own
  --via way           how they buy (locked)
  --processes 1..16   processes that sell (4; memory: 1)
  --buyers 1..100000  who each want one piece (2000)
  --stock 1..100000   pieces there are (100)
  --kill              SIGKILL for a process that has the lock
  --freeze            SIGSTOP for a process that has the lock, SIGCONT when others have sold meanwhile
  --kill-nodes 0..2   SIGKILL for so many of the servers that have the lock (0): redlock has five,
                      redis-sentinel and redis-cluster have one, and another takes its place
  --unsafe            without lock and fence, to see what they prevent
  --json              the result as JSON

backends: ${BACKEND_NAMES.join(', ')}
ways: ${WAYS.join(', ')}`;

/** Error of the user's arguments, which is shown with the usage and without a stack. */
export class UsageError extends Error {}

/** @throws UsageError */
export function readArguments(argv: readonly string[]): Plan | 'help' {
  const values = parseOptions(argv);
  if (values.help === true) return 'help';
  const backend = readChoice('--backend', values.backend ?? 'sqlite', BACKEND_NAMES);
  const plan: Plan = {
    backend,
    via: readChoice('--via', values.via ?? 'locked', WAYS),
    processes: readInteger('--processes', values.processes ?? (backend === 'memory' ? '1' : '4'), 16),
    buyers: readInteger('--buyers', values.buyers ?? '2000', 100_000),
    stock: readInteger('--stock', values.stock ?? '100', 100_000),
    kill: values.kill ?? false,
    freeze: values.freeze ?? false,
    killNodes: readInteger('--kill-nodes', values['kill-nodes'] ?? '0', MAX_KILLED_NODES[backend] ?? 2, 0),
    unsafe: values.unsafe ?? false,
    json: values.json ?? false,
  };
  assertPossible(plan);
  return plan;
}

function assertPossible({ backend, via, processes, kill, freeze, killNodes, unsafe }: Plan): void {
  const faults = Number(kill) + Number(freeze);
  if (backend === 'memory' && processes > 1) {
    throw new UsageError('--backend memory locks inside one process only: use --processes 1, or another backend');
  }
  if (killNodes > 0 && MAX_KILLED_NODES[backend] === undefined) {
    const possible = Object.keys(MAX_KILLED_NODES).join(', ');
    throw new UsageError(`--kill-nodes is for --backend ${possible}: all other locks are in one place`);
  }
  if (unsafe && via !== 'locked') throw new UsageError('--unsafe sells in one way only: leave out --via');
  if (faults > 0 && via === 'optimistic') {
    throw new UsageError('--kill and --freeze strike a process that has the lock: with --via optimistic none has one');
  }
  if (faults > 0 && processes <= faults) {
    throw new UsageError(`this needs --processes ${faults + 1} or more: somebody has to go on selling`);
  }
}

function parseOptions(argv: readonly string[]) {
  try {
    const text = { type: 'string' } as const;
    const flag = { type: 'boolean' } as const;
    const options = {
      backend: text,
      via: text,
      processes: text,
      buyers: text,
      stock: text,
      kill: flag,
      freeze: flag,
      'kill-nodes': text,
      unsafe: flag,
      json: flag,
      help: flag,
    };
    return parseArgs({ args: [...argv], options }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readChoice<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === text);
  if (found !== undefined) return found;
  throw new UsageError(`${option} must be one of ${allowed.join(', ')}; it was ${JSON.stringify(text)}`);
}

function readInteger(option: string, text: string, max: number, min = 1): number {
  const value = Number(text);
  if (/^\d+$/u.test(text) && value >= min && value <= max) return value;
  throw new UsageError(`${option} must be a whole number from ${min} to ${max}; it was ${JSON.stringify(text)}`);
}
