import { MemcachedError, unexpected } from '../error.js';
import { type ReplyPart, ReplyParser } from './reply-parser.js';

/** One request, and how its reply is read. */
export interface Command<Result> {
  /** As it goes over the wire. */
  readonly text: string;
  /**
   * Takes the next part of the reply; `undefined` until it was the last one.
   * @throws MemcachedError: `refused` when that was the answer, `protocol` when the part is no reply to this command
   */
  read(part: ReplyPart): Result | undefined;
}

/** The commands of one round trip. */
export type Commands<Results extends readonly unknown[]> = {
  readonly [Index in keyof Results]: Command<Results[Index]>;
};

/** Commands that were sent together and are answered together. */
interface Exchange {
  readonly results: unknown[];
  missing: number;
  readonly resolve: (results: unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Pending {
  readonly command: Command<unknown>;
  readonly exchange: Exchange;
  readonly index: number;
  readonly since: number;
}

/** Gives each reply to the command that it belongs to: the oldest without one. Does no I/O. */
export class Pipeline {
  readonly #parser = new ReplyParser();
  #pending: Pending[] = [];

  /** Since when the next reply is being waited for. */
  get oldest(): number | undefined {
    return this.#pending[0]?.since;
  }

  /** `commands` were sent, at `now`. Rejects with what `fail` is told, or when the server refuses one of them. */
  expect<Results extends readonly unknown[]>(commands: Commands<Results>, now: number): Promise<Results>;
  expect(commands: readonly Command<unknown>[], now: number): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      const exchange: Exchange = { results: [], missing: commands.length, resolve, reject };
      for (const [index, command] of commands.entries()) this.#pending.push({ command, exchange, index, since: now });
    });
  }

  /** @throws MemcachedError when this is no sequence of replies: whoever catches it calls `fail` */
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
    const { exchange, index } = head;
    try {
      if (part.line.startsWith('SERVER_ERROR')) throw refusal(part.line);
      const result = head.command.read(part);
      if (result === undefined) return;
      exchange.results[index] = result;
    } catch (error) {
      if (!(error instanceof MemcachedError) || error.kind !== 'refused') throw error;
      exchange.reject(error);
    }
    this.#pending.shift();
    exchange.missing -= 1;
    if (exchange.missing === 0) exchange.resolve(exchange.results);
  }
}

/** The server could not, and is ready for the next command. */
export function refusal(line: string): MemcachedError {
  return new MemcachedError('refused', `the server refused: ${line.replace(/^\w+ /u, '')}`);
}
