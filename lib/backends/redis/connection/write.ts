import { cleanError, isReply } from '../error.js';
import { asList } from '../scripts/redis-reply.js';
import type { RedisScript, ScriptCall } from '../scripts/redis-script.js';
import type { PendingQuestion } from './pending-question.js';
import type { RedisRequest, SharedRequest } from './question.js';
import type { RedisArgument, RedisClient, RedisCommand } from './redis-client.js';

export interface WriteListener {
  /** The server has said something. `answered`: it was no error. */
  onHeard(answered: boolean): void;
}

/** Calls of one script, all by its name or all by its source, that share a command. */
class Batch {
  readonly calls: ScriptCall[];
  readonly questions: PendingQuestion[];
  readonly script: RedisScript;
  readonly bySource: boolean;
  readonly group: number;

  constructor(call: ScriptCall, question: PendingQuestion) {
    this.calls = [call];
    this.questions = [question];
    this.script = call.script;
    this.bySource = question.bySource;
    this.group = question.group;
  }

  /** Whether it has taken the call. */
  take(call: ScriptCall, question: PendingQuestion): boolean {
    const fits = this.script === call.script && this.bySource === question.bySource && this.group === question.group;
    if (!fits || this.calls.length >= this.script.shape.mostInACommand) return false;
    this.calls.push(call);
    this.questions.push(question);
    return true;
  }
}

/**
 * All that goes out in one turn, in one write to the socket. Calls of one script share a command, because a command costs a
 * client and a server more than a call does. ioredis' own pipelines do less of this at several times the cost.
 */
export class Write {
  /** In the order in which they began: an acquisition must not overtake the release of its key. */
  readonly #parts: (Batch | PendingQuestion)[] = [];
  /** A call may join a batch from here on. In an earlier one it would overtake something else. */
  #joinFrom = 0;
  #shared: Map<SharedRequest, PendingQuestion[]> | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly listener: WriteListener,
  ) {}

  add(question: PendingQuestion): void {
    const { soleCall, sharedRequest } = question;
    if (soleCall) this.#join(soleCall, question);
    else this.#joinFrom = this.#parts.push(question);
    if (sharedRequest) this.#share(sharedRequest, question);
  }

  /** Sends all parts, and after them the requests that are shared. */
  end(): void {
    for (const part of this.#parts) {
      if (part instanceof Batch) this.#sendBatch(part);
      else part.question.requests.forEach((request, index) => this.#sendAlone(part, index, request));
    }
    this.#shared?.forEach((questions, { once }) => {
      this.#send(once, questions, (reply) => {
        for (const question of questions) question.onReply(question.size - 1, reply);
      });
    });
  }

  #join(call: ScriptCall, question: PendingQuestion): void {
    for (let i = this.#parts.length - 1; i >= this.#joinFrom; i -= 1) {
      const part = this.#parts[i];
      if (part instanceof Batch && part.take(call, question)) return;
    }
    this.#parts.push(new Batch(call, question));
  }

  #share(request: SharedRequest, question: PendingQuestion): void {
    this.#shared ??= new Map();
    const others = this.#shared.get(request);
    if (others) others.push(question);
    else this.#shared.set(request, [question]);
  }

  #sendBatch({ script, calls, bySource, questions }: Batch): void {
    this.#send(commandOf(script, calls, bySource), questions, (reply) => {
      const answers = asList(reply);
      for (let i = 0; i < questions.length; i += 1) questions[i]?.onReply(0, answers[i]);
    });
  }

  #sendAlone(question: PendingQuestion, index: number, request: RedisRequest): void {
    if ('once' in request) return;
    const isCall = 'script' in request;
    const command = isCall ? commandOf(request.script, [request], question.bySource) : request;
    this.#send(command, [question], (reply) => question.onReply(index, isCall ? asList(reply)[0] : reply));
  }

  /** @param onReply may throw what is wrong with the reply */
  #send(command: RedisCommand, questions: readonly PendingQuestion[], onReply: (reply: unknown) => void): void {
    const onFailure = (error: unknown): void => {
      if (isReply(error)) this.listener.onHeard(false);
      const failure = cleanError(error);
      for (const question of questions) question.fail(failure);
    };
    const onAnswer = (reply: unknown): void => {
      this.listener.onHeard(!(Array.isArray(reply) && reply.some(isReply)));
      try {
        onReply(reply);
      } catch (error) {
        onFailure(error);
      }
    };
    try {
      this.client.call(...command).then(onAnswer, onFailure);
    } catch (error) {
      onFailure(error);
    }
  }
}

/** One command for calls of one script: first the keys of all, then their arguments. */
function commandOf(
  { source, sha1, shape }: RedisScript,
  calls: readonly ScriptCall[],
  bySource: boolean,
): RedisCommand {
  const [name, script] = bySource ? ['EVAL', source] : ['EVALSHA', sha1];
  const command: [string, ...RedisArgument[]] = [name, script, calls.length * shape.keys];
  for (const { keys } of calls) command.push(...keys);
  for (const { args } of calls) command.push(...args);
  return command;
}
