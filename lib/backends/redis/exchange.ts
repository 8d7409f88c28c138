import type { Asker, Linked } from '../../core/index.js';
import type { RedisArgument, RedisClient } from './redis-client.js';
import { cleanError, isReply } from './redis-error.js';
import type { RedisRequest, SharedRequest } from './redis-scripts.js';

/** Requests that are answered together, or fail with the first of them that fails. */
export interface Question {
  readonly requests: readonly RedisRequest[];
  /** Whoever may give up before it is sent. */
  readonly asker?: Asker | undefined;
  /** Sends scripts to a server that does not know them. */
  readonly bySource?: boolean;
  readonly resolve: (replies: unknown[]) => void;
  /** Gets an error that may be logged. */
  readonly reject: (error: Error) => void;
}

export interface ExchangeListener {
  /** The server has said something, also after the exchange is over. */
  onHeard(answered: boolean): void;
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
  readonly #replies: unknown[] = [];
  #missing: number;
  #over = false;

  constructor(
    readonly question: Question,
    readonly enteredAt: number,
    private readonly listener: ExchangeListener,
  ) {
    this.#missing = question.requests.length;
  }

  get size(): number {
    return this.question.requests.length;
  }

  /** It waits for something that the server does for all of one write. */
  get shares(): boolean {
    return this.question.requests.some((request) => 'once' in request);
  }

  send(write: Write): void {
    const { requests, bySource = false } = this.question;
    try {
      for (const [place, request] of requests.entries()) {
        write.call(request, bySource).then((reply) => this.#onReply(place, reply), this.#onFailure);
      }
    } catch (error) {
      this.#onFailure(error);
    }
  }

  fail(error: Error): void {
    if (this.#end()) this.question.reject(error);
  }

  #onReply(place: number, reply: unknown): void {
    this.listener.onHeard(true);
    this.#replies[place] = reply;
    this.#missing -= 1;
    if (this.#missing === 0 && this.#end()) this.question.resolve(this.#replies);
  }

  readonly #onFailure = (error: unknown): void => {
    if (isReply(error)) this.listener.onHeard(false);
    this.fail(cleanError(error));
  };

  /** Whether it was not over before. */
  #end(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.listener.onOver(this);
    return true;
  }
}

/** What goes out together. ioredis' own pipelines do this at several times the cost. */
export class Write {
  /** Scripts that the server learns from what went before. */
  readonly #taught = new Set<RedisArgument | undefined>();
  readonly #shared = new Map<SharedRequest, Promise<unknown>>();
  readonly #last: (() => void)[] = [];

  constructor(private readonly client: RedisClient) {}

  call(request: RedisRequest, bySource: boolean): Promise<unknown> {
    if ('once' in request) return this.#once(request);
    if (!('byName' in request)) return this.client.call(...request);
    const { byName } = request;
    if (!bySource || this.#taught.has(byName[1])) return this.client.call(...byName);
    this.#taught.add(byName[1]);
    return this.client.call(...request.bySource());
  }

  /** Sends what is asked for once, after all the rest. */
  end(): void {
    for (const send of this.#last) send();
  }

  #once(request: SharedRequest): Promise<unknown> {
    const known = this.#shared.get(request);
    if (known) return known;
    const answer = new Promise((resolve, reject) => {
      this.#last.push(() => void this.client.call(...request.once).then(resolve, reject));
    });
    this.#shared.set(request, answer);
    return answer;
  }
}
