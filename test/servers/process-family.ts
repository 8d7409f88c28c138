import { readdirSync, readFileSync } from 'node:fs';
import { kill } from 'node:process';

const PATIENCE_MS = 5_000;

/**
 * A server with all its threads and processes. PostgreSQL gives each connection a process of its own, in a session of its own:
 * no signal reaches all of them. What is asked for has happened to every one when a method returns.
 */
export class ProcessFamily {
  private constructor(readonly pid: number) {}

  /** No family for a number that, as the target of a signal, means more than one process. */
  static of(pid: number): ProcessFamily | undefined {
    return pid > 1 ? new ProcessFamily(pid) : undefined;
  }

  /** The parent first, so that it has no further children meanwhile. */
  freeze(): void {
    this.#send('SIGSTOP', [this.pid], 'T');
    this.#send('SIGSTOP', this.#children(), 'T');
  }

  thaw(): void {
    for (const pid of [...this.#children(), this.pid]) signal('SIGCONT', pid);
  }

  /** All at once, as when the machine loses power. Nothing of theirs is in use any more. */
  kill(): void {
    this.freeze();
    this.#send('SIGKILL', [...this.#children(), this.pid], 'Z');
  }

  #children(): readonly number[] {
    try {
      const list = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8');
      return list.split(' ').filter(Boolean).map(Number);
    } catch {
      return [];
    }
  }

  #send(name: NodeJS.Signals, pids: readonly number[], state: 'T' | 'Z'): void {
    for (const pid of pids) signal(name, pid);
    const abandonAt = performance.now() + PATIENCE_MS;
    while (!pids.flatMap(statesOf).every((one) => one === state || one === 'Z')) {
      if (performance.now() > abandonAt) throw new Error(`${name} had no effect on a process of ${this.pid}`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function signal(name: NodeJS.Signals, pid: number): void {
  try {
    kill(pid, name);
  } catch {
    // It is gone already.
  }
}

/** The states of all its threads: `T` stopped, `Z` dead and not yet buried. Empty when there is no such process. */
function statesOf(pid: number): string[] {
  try {
    const stats = readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/stat`, 'utf8'));
    return stats.map((stat) => stat.slice(stat.lastIndexOf(')') + 2).charAt(0));
  } catch {
    return [];
  }
}
