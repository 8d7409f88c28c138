import { type Profiler, Session } from 'node:inspector/promises';

/** The owner of the code that a process ran. */
export type Part = 'core' | 'backend' | 'packages' | 'node' | 'garbage' | 'benchmark';

/** Milliseconds of processor time, by whose code they were spent in. */
export type Spent = Readonly<Record<Part, number>>;

/**
 * V8's sampling profiler: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/. It slows down what it watches, so
 * such a run is for the shares only.
 */
export class ProcessorProfile {
  private constructor(private readonly session: Session) {}

  static async start(): Promise<ProcessorProfile> {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    return new ProcessorProfile(session);
  }

  async stop(): Promise<Spent> {
    const { profile } = await this.session.post('Profiler.stop');
    this.session.disconnect();
    return spentIn(profile);
  }
}

function spentIn({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Spent {
  const parts = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const spent: Record<Part, number> = { core: 0, backend: 0, packages: 0, node: 0, garbage: 0, benchmark: 0 };
  for (const [i, id] of samples.entries()) {
    const part = parts.get(id);
    if (part) spent[part] += (timeDeltas[i] ?? 0) / 1_000;
  }
  return spent;
}

/** `undefined` for a process that waits. */
function partOf({ functionName, url }: Profiler.Profile['nodes'][number]['callFrame']): Part | undefined {
  if (functionName === '(idle)') return undefined;
  if (functionName === '(garbage collector)') return 'garbage';
  if (url.includes('/node_modules/')) return 'packages';
  if (url.includes('/lib/core/')) return 'core';
  if (url.includes('/lib/backends/')) return 'backend';
  if (url.includes('/test/')) return 'benchmark';
  return 'node';
}
