import type { Linked } from '../../core/linked-queue.js';
import type { RedisClient, RedisCommand } from './redis-client.js';
import { cleanError } from './redis-error.js';

/** Commands that are answered together, or fail with the first of them that fails. */
class Exchange {
  readonly #replies: unknown[] = [];
  #missing: number;
  #over = false;

  constructor(
    private readonly batch: Batch,
    private readonly commands: readonly RedisCommand[],
    private readonly resolve: (replies: unknown[]) => void,
    private readonly reject: (error: Error) => void,
  ) {
    this.#missing = commands.length;
  }

  /** Does nothing once it is over. */
  send(client: RedisClient): void {
    if (this.#over) return;
    try {
      for (const [place, command] of this.commands.entries()) {
        client.call(...command).then((reply) => this.#onReply(place, reply), this.fail);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  readonly fail = (error: unknown): void => {
    if (this.#end(false)) this.reject(cleanError(error));
  };

  #onReply(place: number, reply: unknown): void {
    this.#replies[place] = reply;
    this.#missing -= 1;
    if (this.#missing === 0 && this.#end(true)) this.resolve(this.#replies);
  }

  /** Whether it was not over before. */
  #end(answered: boolean): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.batch.onEnd(answered);
    return true;
  }
}

/** What goes out in one write, and is late together. */
export class Batch implements Linked<Batch> {
  /** @internal */
  before: Batch | undefined;
  /** @internal */
  after: Batch | undefined;
  /** @internal */
  queue: object | undefined;
  readonly #exchanges: Exchange[] = [];
  #open = 0;
  #answered = false;

  constructor(
    /** When it will have taken too long. */
    readonly dueAt: number,
    /** Hears once that nothing of it is under way any more, and whether the server has answered any of it. */
    private readonly onOver: (batch: Batch, answered: boolean) => void,
  ) {}

  /** @param reject gets an error that may be logged */
  add(commands: readonly RedisCommand[], resolve: (replies: unknown[]) => void, reject: (error: Error) => void): void {
    this.#exchanges.push(new Exchange(this, commands, resolve, reject));
    this.#open += 1;
  }

  /** ioredis' own pipelines do this at several times the cost. */
  send(client: RedisClient): void {
    const stream = this.#exchanges.length > 1 ? client.stream : undefined;
    stream?.cork();
    for (const exchange of this.#exchanges) exchange.send(client);
    stream?.uncork();
  }

  fail(error: unknown): void {
    for (const exchange of this.#exchanges) exchange.fail(error);
  }

  /** @internal */
  onEnd(answered: boolean): void {
    this.#answered ||= answered;
    this.#open -= 1;
    if (this.#open === 0) this.onOver(this, this.#answered);
  }
}
