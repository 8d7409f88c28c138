import type { Exchange } from './exchange.js';
import type { RedisClient, RedisCommand } from './redis-client.js';
import { cleanError, isReply } from '../error.js';
import { asList } from '../scripts/redis-reply.js';
import type { RedisScript, ScriptCall } from '../scripts/redis-script.js';
import type { RedisRequest, SharedRequest } from '../scripts/queue-scripts.js';

export interface WriteListener {
  /** The server has said something, also after an exchange is over. */
  onHeard(answered: boolean): void;
}

/** Calls of one script, all by its name or all by its source, that share a command. */
class Batch {
  readonly calls: ScriptCall[] = [];
  readonly exchanges: Exchange[] = [];

  constructor(
    readonly script: RedisScript,
    readonly bySource: boolean,
    readonly group: number,
  ) {}

  fits(script: RedisScript, bySource: boolean, group: number): boolean {
    const fits = this.script === script && this.group === group && this.bySource === bySource;
    return fits && this.calls.length < script.shape.mostInACommand;
  }
}

/**
 * All that goes out in one turn, in one write to the socket. Calls of one script share a command, because a command costs a
 * client and a server more than a call does. ioredis' own pipelines do less of this at several times the cost.
 */
export class Write {
  /** In the order in which they began: an acquisition must not overtake the release of its key. */
  readonly #parts: (Batch | Exchange)[] = [];
  /** A call may join a batch from here on, and would overtake something else before. */
  #joinFrom = 0;
  #shared: Map<SharedRequest, Exchange[]> | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly listener: WriteListener,
  ) {}

  add(exchange: Exchange): void {
    const { soleCall, sharedRequest } = exchange;
    if (soleCall) this.#join(exchange, soleCall);
    else this.#joinFrom = this.#parts.push(exchange);
    if (sharedRequest) this.#share(exchange, sharedRequest);
  }

  /** Sends all parts, and last what is asked once for everybody. */
  end(): void {
    for (const part of this.#parts) {
      if (part instanceof Batch) this.#sendBatch(part);
      else part.question.requests.forEach((request, index) => this.#ask(part, index, request));
    }
    for (const [{ once }, exchanges] of this.#shared ?? []) {
      this.#send(once, exchanges, (reply) => {
        for (const exchange of exchanges) exchange.onReply(exchange.size - 1, reply);
      });
    }
  }

  #join(exchange: Exchange, call: ScriptCall): void {
    const { bySource, question } = exchange;
    const { group = 0 } = question;
    let batch = this.#openBatch(call.script, bySource, group);
    if (!batch) this.#parts.push((batch = new Batch(call.script, bySource, group)));
    batch.calls.push(call);
    batch.exchanges.push(exchange);
  }

  #openBatch(script: RedisScript, bySource: boolean, group: number): Batch | undefined {
    for (let i = this.#parts.length - 1; i >= this.#joinFrom; i -= 1) {
      const part = this.#parts[i];
      if (part instanceof Batch && part.fits(script, bySource, group)) return part;
    }
    return undefined;
  }

  #sendBatch({ script, calls, bySource, exchanges }: Batch): void {
    this.#send(script.command(calls, bySource), exchanges, (reply) => {
      const answers = asList(reply);
      for (let i = 0; i < exchanges.length; i += 1) exchanges[i]?.onReply(0, answers[i]);
    });
  }

  #ask(exchange: Exchange, index: number, request: RedisRequest): void {
    if ('once' in request) return;
    const isCall = 'script' in request;
    const command = isCall ? request.script.command([request], exchange.bySource) : request;
    this.#send(command, [exchange], (reply) => exchange.onReply(index, isCall ? asList(reply)[0] : reply));
  }

  #share(exchange: Exchange, request: SharedRequest): void {
    this.#shared ??= new Map();
    const others = this.#shared.get(request);
    if (others) others.push(exchange);
    else this.#shared.set(request, [exchange]);
  }

  /** @param onReply may throw what is wrong with the reply */
  #send(command: RedisCommand, exchanges: readonly Exchange[], onReply: (reply: unknown) => void): void {
    const onFailure = (error: unknown): void => {
      if (isReply(error)) this.listener.onHeard(false);
      const failure = cleanError(error);
      for (const exchange of exchanges) exchange.fail(failure);
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
