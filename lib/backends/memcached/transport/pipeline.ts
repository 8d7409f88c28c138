import { MemcachedError, unexpectedReplyError } from '../error.js';
import { type ReplyPart, ReplyParser } from './reply-parser.js';

export interface Command<Result> {
  readonly text: string;
  /**
   * Reads the next part of the reply, and returns the result with the last part, `undefined` before it.
   * @throws MemcachedError: `refused` when the server refused, `protocol` when the part is no reply to this command
   */
  read(part: ReplyPart): Result | undefined;
}

export type Commands<Results extends readonly unknown[]> = {
  readonly [Index in keyof Results]: Command<Results[Index]>;
};

/** Commands that were sent together, and whose results are returned together. */
interface Exchange {
  readonly sentAt: number;
  readonly count: number;
  readonly results: unknown[];
  readonly resolve: (results: unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Assigns each reply to the oldest command without one. Does no I/O. */
export class Pipeline {
  readonly #parser = new ReplyParser();
  #pending: { readonly command: Command<unknown>; readonly exchange: Exchange }[] = [];

  /** Time at which the oldest command without a reply was sent. */
  get oldestSentAt(): number | undefined {
    return this.#pending[0]?.exchange.sentAt;
  }

  /**
   * Waits for the replies to commands that were sent at `now`. Rejects when the server refuses one of them, or with the
   * error of `fail`.
   */
  expectReplies<Results extends readonly unknown[]>(commands: Commands<Results>, now: number): Promise<Results>;
  expectReplies(commands: readonly Command<unknown>[], now: number): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      const exchange = { sentAt: now, count: commands.length, results: [], resolve, reject };
      for (const command of commands) this.#pending.push({ command, exchange });
    });
  }

  /**
   * Reads bytes of the server.
   * @throws MemcachedError when these are no sequence of replies: the caller then calls `fail`
   */
  receive(chunk: Buffer): void {
    for (const part of this.#parser.push(chunk)) this.#onPart(part);
  }

  /** Rejects all exchanges: no more replies will come. */
  fail(error: unknown): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const { exchange } of pending) exchange.reject(error);
  }

  #onPart(part: ReplyPart): void {
    const [oldest] = this.#pending;
    if (oldest === undefined) throw unexpectedReplyError(part.line);
    const { command, exchange } = oldest;
    let result: unknown;
    try {
      if (part.line.startsWith('SERVER_ERROR')) throw refusalError(part.line);
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

/**
 * Returns the error for a command that the server refused. The message leaves out the first word of `line`, the kind of
 * error. The connection remains usable.
 */
export function refusalError(line: string): MemcachedError {
  return new MemcachedError('refused', `the server refused: ${line.replace(/^\w+ /u, '')}`);
}
