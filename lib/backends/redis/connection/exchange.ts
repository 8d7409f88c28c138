import type { Asker, Linked } from '../../../core/index.js';
import { cleanError, isReply } from '../error.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { RedisRequest, SharedRequest } from '../scripts/queue-scripts.js';

/** Requests that are answered together, or fail with the first of them that fails. */
export interface Question {
  readonly requests: readonly RedisRequest[];
  /** May give up before it is sent, and waits until all that keeps or frees a lease has been sent. */
  readonly asker?: Asker | undefined;
  /** Keys of another group must not meet these in one command. @default 0 */
  readonly group?: number;
}

export interface ExchangeListener {
  /** Once. */
  onOver(exchange: Exchange): void;
}

/** A question from when it is asked to when it is answered. */
export class Exchange implements Linked<Exchange> {
  /** @internal */
  before: Exchange | undefined;
  /** @internal */
  after: Exchange | undefined;
  /** @internal */
  queue: object | undefined;
  /** The server did not know the script by its name. */
  bySource = false;
  readonly #replies: unknown[] = [];
  #missing: number;
  #over = false;

  constructor(
    readonly question: Question,
    readonly enteredAt: number,
    private readonly listener: ExchangeListener,
    private readonly resolve: (replies: unknown[]) => void,
    /** Gets an error that may be logged. */
    private readonly reject: (error: Error) => void,
  ) {
    this.#missing = question.requests.length;
  }

  get size(): number {
    return this.question.requests.length;
  }

  /** Asked once for all of one write, after it. */
  get sharedRequest(): SharedRequest | undefined {
    const last = this.question.requests.at(-1);
    return last !== undefined && 'once' in last ? last : undefined;
  }

  /** The call that may share a command with others. A second command must find its own right before it. */
  get soleCall(): ScriptCall | undefined {
    const [first, second] = this.question.requests;
    const alone = second === undefined || 'once' in second;
    return alone && first !== undefined && 'script' in first ? first : undefined;
  }

  onReply(place: number, reply: unknown): void {
    if (isReply(reply)) return this.fail(cleanError(reply));
    this.#replies[place] = reply;
    this.#missing -= 1;
    if (this.#missing === 0 && this.#end()) this.resolve(this.#replies);
  }

  fail(error: Error): void {
    if (this.#end()) this.reject(error);
  }

  /** Whether it was not over before. */
  #end(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.listener.onOver(this);
    return true;
  }
}
