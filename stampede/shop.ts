import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Way } from './arguments.js';

const MAIN = join(import.meta.dirname, '../sample-app/main.js');
const ANSWER_WITHIN_MS = 30_000;

/** The answer of a shop to a buyer. `again`: nothing is known, ask somebody, with the reason as far as there is one. */
export type Answer =
  | { readonly kind: 'bought'; readonly orderId: number; readonly retries: number }
  | { readonly kind: 'sold-out' }
  | { readonly kind: 'again'; readonly reason: string };

export interface Opening {
  /** Its directory. */
  readonly cwd: string;
  /** Its environment variables. */
  readonly settings: Readonly<Record<string, string>>;
  /** How its buyers buy. */
  readonly via: Way;
}

/** One process of the sample application, a child of this one. */
export class Shop implements AsyncDisposable {
  /** Purchases sent and not answered yet. */
  pending = 0;
  #open = true;
  readonly #gone: Promise<unknown>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly url: string,
    private readonly via: Way,
  ) {
    this.#gone = hasExited(child) ? Promise.resolve() : once(child, 'exit');
    void this.#gone.then(() => (this.#open = false));
  }

  /** Resolves when it serves, @throws with what it wrote to stderr when it does not */
  static async start(label: string, { cwd, settings, via }: Opening): Promise<Shop> {
    const env = { ...process.env, ...settings, LABEL: label, PORT: '0' };
    const child = fork(MAIN, { cwd, env, silent: true });
    let output = '';
    child.stdout?.resume();
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-2_000)));
    const [answer]: unknown[] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    if (typeof answer === 'object' && answer !== null && 'url' in answer)
      return new Shop(child, String(answer.url), via);
    throw new Error(`${label} did not start: ${output.trim()}`);
  }

  /** Whether it may be sent buyers. */
  get open(): boolean {
    return this.#open;
  }

  async purchase(buyer: string): Promise<Answer> {
    this.pending += 1;
    const way = this.via === 'locked' ? '' : `/${this.via}`;
    try {
      const response = await fetch(`${this.url}/sales/42/purchases${way}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ buyer }),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      return answerOf(response.status, await response.json());
    } catch (error) {
      return { kind: 'again', reason: error instanceof Error ? error.name : 'unknown' };
    } finally {
      this.pending -= 1;
    }
  }

  /** The text of the server-sent events, until `signal` aborts. */
  async events(signal: AbortSignal): Promise<ReadableStream<string>> {
    const { body } = await fetch(`${this.url}/events`, { signal });
    if (!body) throw new Error(`${this.url}/events has no body`);
    return body.pipeThrough(new TextDecoderStream());
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** 409 is sold out, or, with the code of a lock error, a former holder's write that the fence refused. */
function answerOf(status: number, body: unknown): Answer {
  const { id, code, retries } = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  if (status === 201) return { kind: 'bought', orderId: Number(id), retries: Number(retries ?? 0) };
  if (status === 409 && code === undefined) return { kind: 'sold-out' };
  return { kind: 'again', reason: typeof code === 'string' ? code : `HTTP ${status}` };
}
