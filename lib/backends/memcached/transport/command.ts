import type { ReplyPart } from './reply-parser.js';

/** One request, and how its reply is read. */
export interface Command<Result> {
  /** As it goes over the wire. */
  readonly text: string;
  /**
   * Takes the next part of the reply; `undefined` until it was the last one.
   * @throws MemcachedError: `refused` when that was the answer, `protocol` when it is none to this command
   */
  read(part: ReplyPart): Result | undefined;
}

/** The commands of one round trip. */
export type Commands<Results extends readonly unknown[]> = {
  readonly [Index in keyof Results]: Command<Results[Index]>;
};
