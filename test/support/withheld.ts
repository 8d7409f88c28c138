import { readdirSync, readFileSync } from 'node:fs';

const SAMPLE_MS = 1_000;

interface Sample {
  readonly at: number;
  readonly withheldMs: number;
}

/**
 * For how long this process and those that it has started were ready to run and got no processor: the most withheld thread
 * of each, summed up. Only Linux tells; elsewhere it is always zero.
 */
export class WithheldTime {
  readonly #byProcess = new Map<number, number>();
  readonly #samples: Sample[] = [];
  #totalMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Begins to take samples, which keep no process alive. */
  start(): void {
    this.#takeSample();
    this.#timer ??= setInterval(() => this.#takeSample(), SAMPLE_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Milliseconds withheld since that time by `performance.now()`, and in up to a second before it. */
  since(time: number): number {
    const before = this.#samples.findLast(({ at }) => at <= time) ?? this.#samples[0];
    this.#takeSample();
    return this.#totalMs - (before?.withheldMs ?? 0);
  }

  #takeSample(): void {
    for (const id of listFamily(process.pid)) {
      const withheldMs = readWithheldMs(id);
      this.#totalMs += Math.max(0, withheldMs - (this.#byProcess.get(id) ?? 0));
      this.#byProcess.set(id, withheldMs);
    }
    this.#samples.push({ at: performance.now(), withheldMs: this.#totalMs });
  }
}

/** Returns the ids of a process and of all that descend from it. */
function listFamily(id: number): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of listDirectory('/proc').filter((each) => /^\d+$/u.test(each))) {
    // The name of the program, in brackets, may have any character.
    const parent = Number(/.*\) \S (\d+)/su.exec(read(`/proc/${name}/stat`))?.[1] ?? 0);
    childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
  }
  const family = [id];
  for (const member of family) family.push(...(childrenOf.get(member) ?? []));
  return family;
}

function readWithheldMs(id: number): number {
  const threads = listDirectory(`/proc/${id}/task`).map((thread) => read(`/proc/${id}/task/${thread}/schedstat`));
  return Math.max(0, ...threads.map((stat) => Number(stat.split(' ')[1] ?? 0) / 1e6));
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Returns the text of a file, or nothing where the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
