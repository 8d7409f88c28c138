import { cleanError, isReadOnly, isReply, isUnknownScript } from '../error.js';
import type { RedisScript, ScriptCall } from '../scripts/redis-script.js';
import { asList } from '../scripts/redis-values.js';
import type { RedisArgument, RedisClient, RedisCommand } from './redis-client.js';
import type { Question } from './redis-servers.js';

export interface Sender {
  /** The server has said something. `answered`: it was no error. */
  onHeard(answered: boolean): void;
  /** Answered or failed, once. */
  onOver(question: PendingQuestion): void;
  /** The server has answered a request of `question` with an error. Called before the caller hears of it. */
  onErrorReply(error: Error, question: PendingQuestion): void;
  /** Whether the caller shows the client an error that stood among the replies of a shared command: one at a time does. */
  claimsError(): boolean;
  /** Sends the question once more, in the way of `sending`: its first command was not carried out. */
  sendAgain(question: PendingQuestion, sending: Sending): void;
}

/** How a question is sent. */
export interface Sending {
  /** Scripts go by their source: the server does not know them by their name. */
  readonly bySource: boolean;
  /** Its calls share no command with those of other questions. */
  readonly isAlone: boolean;
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
    readonly sending: Sending,
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

  /**
   * Takes a reply, which come in the order of the requests.
   * @param isShared whether the reply was one of several in a command of several questions
   */
  onReply(reply: unknown, isShared: boolean): void {
    if (this.#missing === 0) return;
    if (isReply(reply)) {
      const error = cleanError(reply);
      this.sender.onErrorReply(error, this);
      // The client itself sees an error only where it is the reply of a whole command, and may then reconnect.
      const isUnseen = isShared && isReadOnly(error) && this.sender.claimsError();
      return isUnseen ? this.#sendAgain({ ...this.sending, isAlone: true }) : this.fail(error);
    }
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

  /** The command that this question shared with others failed as a whole: which of them it is about is not known. */
  onSharedError(error: Error): void {
    if (isUnknownScript(error) || isReadOnly(error)) this.fail(error);
    else this.#sendAgain({ ...this.sending, isAlone: true });
  }

  fail(error: Error): void {
    if (this.#missing === 0) return;
    if (isUnknownScript(error) && !this.sending.bySource) return this.#sendAgain({ ...this.sending, bySource: true });
    this.#end();
    this.question.onFailure?.(error);
    this.reject(error);
  }

  #sendAgain(sending: Sending): void {
    if (this.#missing === 0) return;
    this.#end();
    this.sender.sendAgain(this, sending);
  }

  #end(): void {
    this.#missing = 0;
    this.sender.onOver(this);
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
    const canJoin = soleCall && !question.sending.isAlone;
    if (!canJoin || !this.#join(soleCall, question)) {
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

  /** Returns whether the call shares a command with earlier ones, which all go by the script's name or all by its source. */
  #join(call: ScriptCall, question: PendingQuestion): boolean {
    for (let i = this.#parts.length - 1; i >= this.#joinFrom; i -= 1) {
      const { calls = [], questions = [] } = this.#parts[i] ?? {};
      const [first] = questions;
      const isAlike =
        calls[0]?.script === call.script &&
        first?.sending.bySource === question.sending.bySource &&
        !first.sending.isAlone;
      if (isAlike && first.group === question.group && calls.length < call.script.mostInACommand) {
        calls.push(call);
        questions.push(question);
        return true;
      }
    }
    return false;
  }

  #send({ request, calls, questions }: Part): void {
    const isShared = calls.length > 1;
    const onFailure = (error: unknown): void => {
      const failure = cleanError(error);
      const [first] = questions;
      if (isReply(error) && first) {
        this.sender.onHeard(false);
        this.sender.onErrorReply(failure, first);
      }
      for (const question of questions) {
        if (isShared && isReply(error)) question.onSharedError(failure);
        else question.fail(failure);
      }
    };
    const onAnswer = (reply: unknown): void => {
      this.sender.onHeard(!(Array.isArray(reply) && reply.some(isReply)));
      try {
        const answers = calls.length > 0 ? asList(reply) : undefined;
        for (let i = 0; i < questions.length; i += 1) questions[i]?.onReply(answers ? answers[i] : reply, isShared);
      } catch (error) {
        onFailure(error);
      }
    };
    try {
      const command = 'script' in request ? commandOf(request.script, calls, questions[0]?.sending.bySource) : request;
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
