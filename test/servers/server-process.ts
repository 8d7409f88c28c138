import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { withOrphanGuard } from './orphan-guard.js';
import { ProcessFamily } from './process-family.js';

const POLL_MS = 5;

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /**
   * Asks in the server's own protocol whether it serves; false or a rejection means: not yet. Where the protocol can tell,
   * compares `pid`: whoever answers on the port may be a stranger, while ours has failed to bind.
   */
  readonly isReady: (pid: number) => Promise<boolean>;
  /** One that ends instead is noticed at once. @default 60_000 */
  readonly readyWithinMs?: number;
}

/** One server as a child of the test run, which dies with it. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #output: string[] = [];
  #running = true;
  readonly #exited: Promise<unknown>;

  private constructor(command: string, args: readonly string[], cwd: string) {
    const [program, ...rest] = withOrphanGuard(command, ...args);
    this.#child = spawn(program, rest, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#output.push(text));
    }
    this.#exited = once(this.#child, 'exit').then(
      () => (this.#running = false),
      (error: unknown) => {
        this.#running = false;
        this.#output.push(String(error));
      },
    );
  }

  /** Resolves when the server serves. @throws with the server's output when it exits or is not ready in time */
  static async start(server: ServerCommand): Promise<ServerProcess> {
    const child = new ServerProcess(server.command, server.args, server.cwd);
    const abandonAt = performance.now() + (server.readyWithinMs ?? 60_000);
    while (!(await server.isReady(child.#child.pid ?? -1).catch(() => false))) {
      if (!child.#running || performance.now() > abandonAt) {
        await child.kill();
        throw new Error(`${server.command} did not start: ${child.output.trim()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return child;
  }

  /** All that it has written to its standard output and error so far. */
  get output(): string {
    return this.#output.join('');
  }

  get running(): boolean {
    return this.#running;
  }

  /** Has stopped answering, without closing a connection, when this returns; the kernel still accepts new ones. */
  freeze(): void {
    if (this.#running) ProcessFamily.of(this.#child.pid ?? -1)?.freeze();
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Resolves when the process is gone; works on a frozen one too. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#running) this.#child.kill(signal);
    await this.#exited;
  }
}
