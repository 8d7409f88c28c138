import { MemcachedError, unexpected } from '../error.js';
import { type ReplyPart, ReplyParser } from './reply-parser.js';

export interface Command<Result> {
  readonly text: string;
  /**
   * Takes the next part of the reply; `undefined` until it was the last one.
   * @throws MemcachedError: `refused` when that was the answer, `protocol` when the part is no reply to this command
   */
  read(part: ReplyPart): Result | undefined;
}

export type Commands<Results extends readonly unknown[]> = {
  readonly [Index in keyof Results]: Command<Results[Index]>;
};

/** Commands that were sent together and are answered together. */
interface Exchange {
  readonly sentAt: number;
  readonly count: number;
  readonly results: unknown[];
  readonly resolve: (results: unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Gives each reply to the oldest command without one. Does no I/O. */
export class Pipeline {
  readonly #parser = new ReplyParser();
  #pending: { readonly command: Command<unknown>; readonly exchange: Exchange }[] = [];

  /** When the oldest command without a reply was sent. */
  get oldest(): number | undefined {
    return this.#pending[0]?.exchange.sentAt;
  }

  /** `commands` were sent, at `now`. Rejects with what `fail` is told, or when the server refuses one of them. */
  expect<Results extends readonly unknown[]>(commands: Commands<Results>, now: number): Promise<Results>;
  expect(commands: readonly Command<unknown>[], now: number): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      const exchange = { sentAt: now, count: commands.length, results: [], resolve, reject };
      for (const command of commands) this.#pending.push({ command, exchange });
    });
  }

  /** @throws MemcachedError when this is no sequence of replies: the caller then calls `fail` */
  receive(chunk: Buffer): void {
    for (const part of this.#parser.push(chunk)) this.#onPart(part);
  }

  /** No reply will come any more. */
  fail(error: unknown): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const { exchange } of pending) exchange.reject(error);
  }

  #onPart(part: ReplyPart): void {
    const [head] = this.#pending;
    if (head === undefined) throw unexpected(part.line);
    const { command, exchange } = head;
    let result: unknown;
    try {
      if (part.line.startsWith('SERVER_ERROR')) throw refusal(part.line);
      result = command.read(part);
      if (result === undefined) return;
    } catch (error) {
      if (!(error instanceof MemcachedError) || error.kind !== 'refused') throw error;
      exchange.reject(error);
    }
    this.#pending.shift();
    exchange.results.push(result);
    if (exchange.results.length === exchange.count) exchange.resolve(exchange.results);
  }
}

/** The server could not, and is ready for the next command. */
export function refusal(line: string): MemcachedError {
  return new MemcachedError('refused', `the server refused: ${line.replace(/^\w+ /u, '')}`);
}
