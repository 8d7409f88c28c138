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

interface Exchange {
  readonly sentAt: number;
  readonly commandCount: number;
  readonly results: unknown[];
  readonly resolve: (results: unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Commands that have no reply yet, in the order in which they were sent. Each reply belongs to the oldest command. */
export class Pipeline {
  readonly #parser = new ReplyParser();
  #pendingCommands: { readonly command: Command<unknown>; readonly exchange: Exchange }[] = [];

  get oldestSentAt(): number | undefined {
    return this.#pendingCommands[0]?.exchange.sentAt;
  }

  expectReplies<Results extends readonly unknown[]>(commands: Commands<Results>, sentAt: number): Promise<Results>;
  expectReplies(commands: readonly Command<unknown>[], sentAt: number): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      const exchange = { sentAt, commandCount: commands.length, results: [], resolve, reject };
      for (const command of commands) this.#pendingCommands.push({ command, exchange });
    });
  }

  /** @throws MemcachedError when the bytes are no sequence of replies: the caller then calls `fail` */
  receive(chunk: Buffer): void {
    for (const part of this.#parser.parse(chunk)) this.#onPart(part);
  }

  fail(error: unknown): void {
    const pendingCommands = this.#pendingCommands;
    this.#pendingCommands = [];
    for (const { exchange } of pendingCommands) exchange.reject(error);
  }

  #onPart(part: ReplyPart): void {
    const [oldestEntry] = this.#pendingCommands;
    if (oldestEntry === undefined) throw unexpectedReplyError(part.line);
    const { command, exchange } = oldestEntry;
    let result: unknown;
    try {
      if (part.line.startsWith('SERVER_ERROR')) throw refusalError(part.line);
      result = command.read(part);
      if (result === undefined) return;
    } catch (error) {
      if (!(error instanceof MemcachedError) || error.kind !== 'refused') throw error;
      exchange.reject(error);
    }
    this.#pendingCommands.shift();
    exchange.results.push(result);
    if (exchange.results.length === exchange.commandCount) exchange.resolve(exchange.results);
  }
}

/**
 * Returns an error after which the connection remains usable. Its message leaves out the first word of `line`, the kind
 * of error.
 */
export function refusalError(line: string): MemcachedError {
  return new MemcachedError('refused', `the server refused: ${line.replace(/^\w+ /u, '')}`);
}
