import { cleanError, isReply, isUnknownScript } from '../error.js';
import type { ScriptCall } from '../scripts/redis-script.js';
import type { Question, SharedRequest } from './question.js';

export interface QuestionListener {
  /** Answered or failed, once. */
  onOver(pending: PendingQuestion): void;
  /** The server does not know the script by its name. */
  onUnknownScript(pending: PendingQuestion): void;
}

/** A question from when it is asked to when it is answered. */
export class PendingQuestion {
  /** Among those under way; negative while it waits. */
  slot = -1;
  readonly size: number;
  readonly #replies: unknown[];
  #missing: number;
  #over = false;

  constructor(
    readonly question: Omit<Question<unknown>, 'read'>,
    /** Calls of another group must not share a command with this one. */
    readonly group: number,
    readonly enteredAt: number,
    /** Sends scripts by their source. */
    readonly bySource: boolean,
    private readonly listener: QuestionListener,
    /** May throw what is wrong with the replies. */
    readonly resolve: (replies: readonly unknown[]) => void,
    /** Gets an error that may be logged. */
    readonly reject: (error: unknown) => void,
  ) {
    this.size = question.requests.length;
    this.#missing = this.size;
    this.#replies = [...question.requests];
  }

  get sharedRequest(): SharedRequest | undefined {
    const last = this.question.requests[this.size - 1];
    return last !== undefined && 'once' in last ? last : undefined;
  }

  /** The call that may share a command with others. A second command must find its own right before it. */
  get soleCall(): ScriptCall | undefined {
    const [first, second] = this.question.requests;
    const alone = second === undefined || 'once' in second;
    return alone && first !== undefined && 'script' in first ? first : undefined;
  }

  onReply(index: number, reply: unknown): void {
    if (isReply(reply)) return this.fail(cleanError(reply));
    this.#replies[index] = reply;
    this.#missing -= 1;
    if (this.#missing === 0 && this.#end()) this.#answer();
  }

  fail(error: Error): void {
    if (!this.#end()) return;
    if (isUnknownScript(error) && !this.bySource) return this.listener.onUnknownScript(this);
    this.question.onFailure?.(error);
    this.reject(error);
  }

  #answer(): void {
    try {
      this.resolve(this.#replies);
    } catch (error) {
      this.reject(error);
    }
  }

  /** Whether it was not over before. */
  #end(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.listener.onOver(this);
    return true;
  }
}
