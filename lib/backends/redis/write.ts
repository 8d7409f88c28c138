import { SLOTS } from './cluster-slots.js';
import type { Exchange } from './exchange.js';
import type { RedisClient, RedisCommand } from './redis-client.js';
import { cleanError, isReply } from './redis-error.js';
import { asList } from './redis-reply.js';
import type { ScriptCall } from './redis-script.js';
import type { RedisRequest, SharedRequest } from './redis-scripts.js';

export interface WriteListener {
  /** The server has said something, also after an exchange is over. */
  onHeard(answered: boolean): void;
}

/** A call of a script, and the exchange whose request with this index it is. */
interface Asked {
  readonly call: ScriptCall;
  readonly exchange: Exchange;
  readonly index: number;
}

/**
 * All that goes out in one turn, in one write to the socket. Calls of one script share a command, because a command costs a
 * client and a server more than a call does. ioredis' own pipelines do less of this at several times the cost.
 */
export class Write {
  readonly #batches = new Map<number, Asked[]>();
  readonly #shared = new Map<SharedRequest, Exchange[]>();

  constructor(
    private readonly client: RedisClient,
    private readonly listener: WriteListener,
  ) {}

  add(exchange: Exchange): void {
    const { soleCall, question } = exchange;
    if (soleCall) this.#join({ call: soleCall, exchange, index: 0 });
    else {
      this.#callAll(question.group);
      question.requests.forEach((request, index) => this.#ask(exchange, index, request));
    }
    const { sharedRequest } = exchange;
    if (sharedRequest) this.#share(exchange, sharedRequest);
  }

  /** Sends all that waits for company, and last what is asked once for everybody. */
  end(): void {
    for (const batch of this.#batches.values()) this.#call(batch);
    for (const [{ once }, exchanges] of this.#shared) {
      this.#send(once, exchanges, (reply) => {
        for (const exchange of exchanges) exchange.onReply(exchange.size - 1, reply);
      });
    }
  }

  #join(asked: Asked): void {
    const { call, exchange } = asked;
    const { bySource, question } = exchange;
    const { group = 0 } = question;
    const id = (call.script.id * 2 + Number(bySource)) * SLOTS + group;
    const batch = this.#batches.get(id);
    if (batch && batch.length < call.script.shape.mostInACommand) return void batch.push(asked);
    if (batch) this.#callAll(group);
    this.#batches.set(id, [asked]);
  }

  /** In the order in which they began: an acquisition must not overtake the release of its key. */
  #callAll(group = 0): void {
    for (const [id, batch] of this.#batches) {
      if (id % SLOTS !== group) continue;
      this.#batches.delete(id);
      this.#call(batch);
    }
  }

  #ask(exchange: Exchange, index: number, request: RedisRequest): void {
    if ('once' in request) return;
    if ('script' in request) return this.#call([{ call: request, exchange, index }]);
    this.#send(request, [exchange], (reply) => exchange.onReply(index, reply));
  }

  #share(exchange: Exchange, request: SharedRequest): void {
    const others = this.#shared.get(request);
    if (others) others.push(exchange);
    else this.#shared.set(request, [exchange]);
  }

  /** @param batch of one script, all by its name or all by its source */
  #call(batch: readonly Asked[]): void {
    const [first] = batch;
    if (!first) return;
    const calls = batch.map(({ call }) => call);
    const command = first.call.script.command(calls, first.exchange.bySource);
    const exchanges = batch.map(({ exchange }) => exchange);
    this.#send(command, exchanges, (reply) => {
      const answers = asList(reply);
      batch.forEach(({ exchange, index }, place) => exchange.onReply(index, answers[place]));
    });
  }

  /** @param onReply may throw what is wrong with the reply */
  #send(command: RedisCommand, exchanges: readonly Exchange[], onReply: (reply: unknown) => void): void {
    const onAnswer = (reply: unknown): void => {
      this.listener.onHeard(!(Array.isArray(reply) && reply.some(isReply)));
      onReply(reply);
    };
    const onFailure = (error: unknown): void => {
      if (isReply(error)) this.listener.onHeard(false);
      const failure = cleanError(error);
      for (const exchange of exchanges) exchange.fail(failure);
    };
    try {
      this.client
        .call(...command)
        .then(onAnswer)
        .catch(onFailure);
    } catch (error) {
      onFailure(error);
    }
  }
}
