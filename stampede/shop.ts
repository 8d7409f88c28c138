import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { BackendName } from './shop-process/lock-backends.js';
import type { ShopMessage } from './shop-process/shop-message.js';

const MAIN = join(import.meta.dirname, 'shop-process/main.js');
const ANSWER_WITHIN_MS = 30_000;

/** Answer of a shop to a buyer. `again`: the shop knows nothing, ask another one; the reason is there as far as it is known. */
export type Answer =
  | { readonly kind: 'bought'; readonly orderId: number; readonly retries: number }
  | { readonly kind: 'sold-out' }
  | { readonly kind: 'again'; readonly reason: string };

export interface ShopOptions {
  readonly backend: BackendName;
  /** Working directory of the process. */
  readonly directory: string;
  /** Environment variables of the process, beside those of the stampede. */
  readonly env: Readonly<Record<string, string>>;
  /** Route by which the buyers buy, below the sale's. */
  readonly route: string;
}

/** One process that sells, a child of this one. */
export class Shop implements AsyncDisposable {
  /** Number of purchases that were sent and are not answered yet. */
  pending = 0;
  #open = true;
  readonly #exited: Promise<unknown>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly url: string,
    private readonly route: string,
  ) {
    this.#exited = hasExited(child) ? Promise.resolve() : once(child, 'exit');
    void this.#exited.then(() => (this.#open = false));
  }

  /** Starts a process and waits until it serves. @throws Error with the end of its stderr when it does not */
  static async start(label: string, { backend, directory, env, route }: ShopOptions): Promise<Shop> {
    const child = fork(MAIN, [backend], {
      cwd: directory,
      env: { ...process.env, ...env, LABEL: label },
      silent: true,
    });
    let output = '';
    child.stdout?.resume();
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-2_000)));
    const [answer] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [
      ShopMessage | number | null,
    ];
    if (typeof answer === 'object' && answer?.kind === 'open') return new Shop(child, answer.url, route);
    throw new Error(`${label} did not start: ${output.trim()}`);
  }

  /** Whether buyers may be sent to the shop. */
  get open(): boolean {
    return this.#open;
  }

  /** Calls `listener` whenever the shop begins to take a payment. */
  onPayment(listener: () => void): void {
    this.child.on('message', ({ kind }: ShopMessage) => {
      if (kind === 'paying') listener();
    });
  }

  async purchase(buyer: string): Promise<Answer> {
    this.pending += 1;
    try {
      const response = await fetch(`${this.url}/sales/42/${this.route}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ buyer }),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      return readAnswer(response.status, await response.json());
    } catch (error) {
      return { kind: 'again', reason: error instanceof Error ? error.name : 'unknown' };
    } finally {
      this.pending -= 1;
    }
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Reads a 409 as sold out, unless it has the code of a lock error: then the fence refused the write of a former holder. */
function readAnswer(status: number, body: unknown): Answer {
  const { id, code, retries } = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  if (status === 201) return { kind: 'bought', orderId: Number(id), retries: Number(retries ?? 0) };
  if (status === 409 && code === undefined) return { kind: 'sold-out' };
  return { kind: 'again', reason: typeof code === 'string' ? code : `HTTP ${status}` };
}
