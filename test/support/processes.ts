import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { withOrphanGuard } from '../servers/orphan-guard.js';
import type { CallMessage, ChildApi, ChildMessage } from './serve.js';

const runner = fileURLToPath(new URL('./ts-run.cjs', import.meta.url));

export interface SpawnOptions {
  readonly args?: readonly string[];
  /** In addition to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further options of node, such as `--expose-gc`. */
  readonly nodeArgs?: readonly string[];
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Call {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A Node process of its own, outside jest, which runs a TypeScript file that ends with `serve({ … })`. */
export class Child<Api extends ChildApi> {
  /** When and how it ended; its output is complete by then. */
  readonly exited: Promise<Exit>;
  readonly #process: ChildProcess;
  readonly #calls = new Map<number, Call>();
  #nextId = 0;
  #stderr = '';

  constructor(child: ChildProcess) {
    this.#process = child;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    child.stdout?.resume();
    child.on('message', (message: ChildMessage) => this.#settle(message));
    this.exited = once(child, 'close').then(([code, signal]: Exit[keyof Exit][]) => {
      const exit = { code, signal } as Exit;
      for (const { reject } of this.#calls.values()) reject(new Error(this.#describe(exit)));
      this.#calls.clear();
      return exit;
    });
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  /** All that it has written to its standard error so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Runs one function of the child. @throws what that throws, or an error with the child's output when it ends meanwhile */
  call<Name extends keyof Api & string>(
    name: Name,
    ...[payload]: Parameters<Api[Name]>
  ): Promise<Awaited<ReturnType<Api[Name]>>> {
    const id = this.#nextId++;
    const message: CallMessage = { id, name, payload };
    const result = new Promise<unknown>((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#process.send(message, (error) => error && reject(error));
    });
    return result as Promise<Awaited<ReturnType<Api[Name]>>>;
  }

  /** SIGSTOP: as if its machine had stopped, with its connections open. */
  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  /** Resolves when the process is gone; works on a frozen one too. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.#process.kill(signal);
    return this.exited;
  }

  /** Lets go of it: it now exits by itself, unless something keeps it alive. */
  finish(): void {
    this.#process.send('finish');
  }

  /** Resolves when the child serves. */
  async ready(): Promise<void> {
    const ended = this.exited.then((exit) => Promise.reject(new Error(this.#describe(exit))));
    await Promise.race([once(this.#process, 'message'), ended]);
  }

  #settle(message: ChildMessage): void {
    if (message.type === 'ready') return;
    const call = this.#calls.get(message.id);
    this.#calls.delete(message.id);
    if (message.type === 'result') call?.resolve(message.result);
    else call?.reject(message.error);
  }

  #describe({ code, signal }: Exit): string {
    return `The child ended with ${signal ?? code}: ${this.#stderr.trim()}`;
  }
}

/**
 * Starts a child and resolves when it serves. It runs with strict unhandled rejections and dies with its parent.
 * @param file the child's TypeScript, e.g. `new URL('./holder.ts', import.meta.url)`
 */
export async function spawnChild<Api extends ChildApi>(file: URL, options: SpawnOptions = {}): Promise<Child<Api>> {
  const warnings = '--disable-warning=ExperimentalWarning';
  const nodeArgs = ['--unhandled-rejections=strict', warnings, ...(options.nodeArgs ?? [])];
  const [execPath, ...execArgv] = withOrphanGuard(process.execPath, ...nodeArgs);
  const { NODE_OPTIONS: _ofJest, ...inherited } = process.env;
  const child = new Child<Api>(
    fork(runner, [fileURLToPath(file), ...(options.args ?? [])], {
      execPath,
      execArgv,
      env: { ...inherited, ...options.env },
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    }),
  );
  await child.ready();
  return child;
}
