import { cleanError, isReply, isUnknownScript } from '../error.js';
import type { RedisScript, ScriptCall } from '../scripts/redis-script.js';
import { asList } from '../scripts/redis-values.js';
import type { RedisArgument, RedisClient, RedisCommand } from './redis-client.js';
import type { Question } from './redis-servers.js';

export interface Sender {
  /** The server has said something. `answered`: it was no error. */
  onHeard(answered: boolean): void;
  /** Answered or failed, once. */
  onOver(question: PendingQuestion): void;
  /** The server does not know the script by its name. */
  onUnknownScript(question: PendingQuestion): void;
}

/** A question from when it is asked to when it is answered. */
export class PendingQuestion {
  /** Among those under way; negative while it waits. */
  index = -1;
  enteredAt = 0;
  readonly size: number;
  readonly #replies: unknown[];
  #missing: number;

  constructor(
    readonly question: Omit<Question<unknown>, 'read'>,
    /** Calls of another group must not share a command with this one. */
    readonly group: number,
    /** Sends scripts by their source. */
    readonly bySource: boolean,
    private readonly sender: Sender,
    /** May throw what is wrong with the replies. */
    readonly resolve: (replies: readonly unknown[]) => void,
    /** Gets an error that may be logged. */
    readonly reject: (error: unknown) => void,
  ) {
    this.size = question.requests.length + (question.confirmation ? 1 : 0);
    this.#missing = this.size;
    this.#replies = [...question.requests];
  }

  /** Replies come in the order of the requests. */
  onReply(reply: unknown): void {
    if (this.#missing === 0) return;
    if (isReply(reply)) return this.fail(cleanError(reply));
    this.#replies[this.size - this.#missing] = reply;
    this.#missing -= 1;
    if (this.#missing > 0) return;
    this.sender.onOver(this);
    try {
      this.resolve(this.#replies);
    } catch (error) {
      this.reject(error);
    }
  }

  fail(error: Error): void {
    if (this.#missing === 0) return;
    this.#missing = 0;
    this.sender.onOver(this);
    if (isUnknownScript(error) && !this.bySource) return this.sender.onUnknownScript(this);
    this.question.onFailure?.(error);
    this.reject(error);
  }
}

/** Becomes a command: a request of one question, calls of one script that share it, or the confirmation for many. */
interface Part {
  readonly request: RedisCommand | ScriptCall;
  readonly calls: ScriptCall[];
  readonly questions: PendingQuestion[];
}

/**
 * All that goes out in one turn, in one write to the socket. Calls of one script share a command, because a command
 * costs a client and a server more than a call does. ioredis' own pipelines do less of this at several times the cost.
 */
export class Write {
  /** In the order in which they began: an acquisition must not overtake the release of its key. */
  readonly #parts: Part[] = [];
  /** A call may join a part from here on. In an earlier one it would overtake something else. */
  #joinFrom = 0;
  readonly #unconfirmed: PendingQuestion[] = [];

  constructor(
    private readonly client: RedisClient,
    private readonly sender: Sender,
  ) {}

  add(question: PendingQuestion): void {
    const { requests, confirmation } = question.question;
    const [first, second] = requests;
    // A second command must find its own right before it.
    const soleCall = first && !second && 'script' in first ? first : undefined;
    if (!soleCall || !this.#join(soleCall, question)) {
      for (const request of requests)
        this.#parts.push({ request, calls: 'script' in request ? [request] : [], questions: [question] });
    }
    if (!soleCall) this.#joinFrom = this.#parts.length;
    if (confirmation) this.#unconfirmed.push(question);
  }

  /** Sends all parts, and after them the confirmation. */
  end(): void {
    for (const part of this.#parts) this.#send(part);
    const request = this.#unconfirmed[0]?.question.confirmation;
    if (request) this.#send({ request, calls: [], questions: this.#unconfirmed });
  }

  /** All calls of a part are by the name of the script, or all by its source. */
  #join(call: ScriptCall, question: PendingQuestion): boolean {
    for (let i = this.#parts.length - 1; i >= this.#joinFrom; i -= 1) {
      const { calls = [], questions = [] } = this.#parts[i] ?? {};
      const [first] = questions;
      const isAlike = calls[0]?.script === call.script && first?.bySource === question.bySource;
      if (isAlike && first.group === question.group && calls.length < call.script.mostInACommand) {
        calls.push(call);
        questions.push(question);
        return true;
      }
    }
    return false;
  }

  #send({ request, calls, questions }: Part): void {
    const onFailure = (error: unknown): void => {
      if (isReply(error)) this.sender.onHeard(false);
      const failure = cleanError(error);
      for (const question of questions) question.fail(failure);
    };
    const onAnswer = (reply: unknown): void => {
      this.sender.onHeard(!(Array.isArray(reply) && reply.some(isReply)));
      try {
        const answers = calls.length > 0 ? asList(reply) : undefined;
        for (let i = 0; i < questions.length; i += 1) questions[i]?.onReply(answers ? answers[i] : reply);
      } catch (error) {
        onFailure(error);
      }
    };
    try {
      const command = 'script' in request ? commandOf(request.script, calls, questions[0]?.bySource) : request;
      this.client.call(...command).then(onAnswer, onFailure);
    } catch (error) {
      onFailure(error);
    }
  }
}

/** One command for calls of one script: first the keys of all, then their arguments. */
function commandOf(script: RedisScript, calls: readonly ScriptCall[], bySource = false): RedisCommand {
  const [name, text] = bySource ? ['EVAL', script.source] : ['EVALSHA', script.sha1];
  const command: [string, ...RedisArgument[]] = [name, text, calls.length * script.keys];
  for (const { keys } of calls) command.push(...keys);
  for (const { args } of calls) command.push(...args);
  return command;
}
