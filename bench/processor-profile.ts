import { type Profiler, Session } from 'node:inspector/promises';

/** Owner of the code that a process ran. */
export type CodeOwner = 'core' | 'backend' | 'packages' | 'node' | 'garbage' | 'benchmark';

/** Milliseconds of processor time by the owner of the code. */
export type TimeByOwner = Readonly<Record<CodeOwner, number>>;

/**
 * Profile by V8's sampling profiler: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/. The profiler slows
 * the process down: only the shares of the owners are meaningful.
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

  async stop(): Promise<TimeByOwner> {
    const { profile } = await this.session.post('Profiler.stop');
    this.session.disconnect();
    return sumTimeByOwner(profile);
  }
}

function sumTimeByOwner({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): TimeByOwner {
  const owners = new Map(nodes.map(({ id, callFrame }) => [id, findCodeOwner(callFrame)]));
  const timeMs: Record<CodeOwner, number> = { core: 0, backend: 0, packages: 0, node: 0, garbage: 0, benchmark: 0 };
  for (const [i, id] of samples.entries()) {
    const owner = owners.get(id);
    if (owner) timeMs[owner] += (timeDeltas[i] ?? 0) / 1_000;
  }
  return timeMs;
}

/** Returns the owner of the code of a stack frame; `undefined` while the process was idle. */
function findCodeOwner({ functionName, url }: Profiler.Profile['nodes'][number]['callFrame']): CodeOwner | undefined {
  if (functionName === '(idle)') return undefined;
  if (functionName === '(garbage collector)') return 'garbage';
  if (url.includes('/node_modules/')) return 'packages';
  if (url.includes('/lib/core/')) return 'core';
  if (url.includes('/lib/backends/')) return 'backend';
  if (url.includes('/test/')) return 'benchmark';
  return 'node';
}
