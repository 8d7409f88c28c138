import { type Clock, LinkedQueue, NotSentError } from '../../../core/index.js';
import { Exchange, type ExchangeListener, type Question } from './exchange.js';
import type { RedisClient } from './redis-client.js';
import { isUnknownScript } from '../error.js';
import { ReplyTimeouts } from './reply-timeouts.js';
import { Write, type WriteListener } from './write.js';

/**
 * So many commands are under way at a time: enough to keep a server busy, and no more than it answers within some
 * milliseconds, because a renewal has to wait for all that was sent before it.
 */
const MOST_UNDER_WAY = 500;
/**
 * So many requests for leases may wait here. A server answers them within some seconds. With their callers they take up to
 * 0.6 GB, and ten times as many would not fit into Node's default heap. Others are refused, and may be asked again.
 */
const MOST_WAITING = 100_000;

export interface WindowListener {
  /** Something waits, and there is no client to send it. */
  onNeed(): void;
  /** The server has said something: an answer, or an error. */
  onHeard(answered: boolean): void;
  /** Something is under way, and not a byte has come for too long. */
  onSilence(): void;
  /** Something waits, and there has been no client for too long. */
  onStall(): void;
}

/**
 * Sends commands to a client, a bounded number at a time, in the order of the calls, those of one turn in one write. Whatever
 * is beyond waits here: what keeps or frees a lease goes before what asks for one. A server is silent when nothing comes from
 * it, however long one answer takes among others.
 */
export class CommandWindow implements ExchangeListener, WriteListener {
  readonly #first = new LinkedQueue<Exchange>();
  readonly #second = new LinkedQueue<Exchange>();
  readonly #underWay = new LinkedQueue<Exchange>();
  readonly #watch: ReplyTimeouts;
  #client: RedisClient | undefined;
  #waiting = 0;
  #free = MOST_UNDER_WAY;
  /** How many of those under way wait for what the server does once for all of them. */
  #sharing = 0;
  #pumping = false;
  #shutSince = 0;
  /** When the server was last heard, or had nothing to answer; and how many bytes had come by then. */
  #heardAt = 0;
  #bytesHeard: number | undefined;

  constructor(
    private readonly timeoutMs: number,
    private readonly clock: Clock,
    private readonly listener: WindowListener,
  ) {
    this.#watch = new ReplyTimeouts(clock, timeoutMs, this.#nextDueAt, this.#onOverdue);
  }

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /** How long the server has not been heard. */
  get quietMs(): number {
    return this.clock.now() - this.#heardAt;
  }

  /** Resolves to the replies, in the order of the requests. Rejects with an error that may be logged. */
  ask(question: Question): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      if (question.asker && this.#waiting >= MOST_WAITING) {
        return reject(new NotSentError(`${MOST_WAITING} requests of this process wait for the server already`));
      }
      const exchange = new Exchange(question, this.clock.now(), this, resolve, (error) => {
        if (isUnknownScript(error) && !exchange.bySource) this.#askBySource(question, resolve, reject);
        else reject(error);
      });
      this.#enter(exchange, question.asker ? this.#second : this.#first);
    });
  }

  /** From now on there is somewhere to send to. */
  open(client: RedisClient): void {
    this.#client = client;
    this.#noteHeard();
    this.#pumpSoon();
  }

  /** Until it is opened again all waits here. */
  shut(): void {
    this.#client = undefined;
    this.#shutSince = this.clock.now();
    if (this.#waiting > 0) this.#watch.start();
  }

  failUnderWay(error: Error): void {
    for (let one = this.#underWay.first; one; one = this.#underWay.first) one.fail(error);
  }

  /** @param error why it is not sent */
  failWaiting(error: Error, by = Infinity): void {
    for (const lane of [this.#first, this.#second]) {
      for (let one = lane.first; one && this.#lateFrom(one) <= by; one = lane.first) {
        this.#leave(one, lane);
        one.fail(error);
      }
    }
  }

  /** @internal */
  onHeard(answered: boolean): void {
    this.#noteHeard();
    this.listener.onHeard(answered);
  }

  /** @internal */
  onOver(exchange: Exchange): void {
    if (exchange.queue !== this.#underWay) return;
    this.#underWay.delete(exchange);
    this.#free += exchange.size;
    if (exchange.sharedRequest) this.#sharing -= 1;
    if (this.#waiting > 0) this.#pumpSoon();
  }

  #askBySource(question: Question, resolve: (replies: unknown[]) => void, reject: (error: Error) => void): void {
    const exchange = new Exchange(question, this.clock.now(), this, resolve, reject);
    exchange.bySource = true;
    this.#enter(exchange, this.#first);
  }

  #enter(exchange: Exchange, lane: LinkedQueue<Exchange>): void {
    lane.push(exchange);
    this.#waiting += 1;
    this.#pumpSoon();
    this.#watch.start();
  }

  #leave(exchange: Exchange, lane: LinkedQueue<Exchange>): void {
    lane.delete(exchange);
    this.#waiting -= 1;
  }

  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    process.nextTick(this.#pump);
  }

  readonly #pump = (): void => {
    this.#pumping = false;
    if (this.#waiting === 0 || this.#sharing > 0) return;
    if (!this.#client) return this.listener.onNeed();
    const write = new Write(this.#client, this);
    const stream = this.#waiting > 1 ? this.#client.stream : undefined;
    stream?.cork();
    for (let one = this.#next(); one; one = this.#next()) this.#send(one, write);
    write.end();
    stream?.uncork();
  };

  #next(): Exchange | undefined {
    return this.#free <= 0 ? undefined : (this.#take(this.#first) ?? this.#take(this.#second));
  }

  /** What nobody waits for any more is never sent. */
  #take(lane: LinkedQueue<Exchange>): Exchange | undefined {
    for (let one = lane.first; one; one = lane.first) {
      this.#leave(one, lane);
      if (one.question.asker?.onSend() !== false) return one;
      one.fail(new NotSentError('given up before it was sent'));
    }
    return undefined;
  }

  #send(exchange: Exchange, write: Write): void {
    if (!this.#underWay.first) this.#noteHeard();
    this.#underWay.push(exchange);
    this.#free -= exchange.size;
    if (exchange.sharedRequest) this.#sharing += 1;
    write.add(exchange);
  }

  #noteHeard(): void {
    this.#heardAt = this.clock.now();
    this.#bytesHeard = this.#client?.stream?.bytesRead;
  }

  #lateFrom({ enteredAt }: Exchange): number {
    return Math.max(enteredAt, this.#shutSince) + this.timeoutMs;
  }

  readonly #nextDueAt = (): number => {
    const silentFrom = this.#underWay.first ? this.#heardAt + this.timeoutMs : Infinity;
    if (this.#client) return silentFrom;
    const heads = [this.#first.first, this.#second.first].filter((one) => one !== undefined);
    return Math.min(silentFrom, ...heads.map((one) => this.#lateFrom(one)));
  };

  readonly #onOverdue = (): void => {
    const now = this.clock.now();
    if (this.#underWay.first && this.#heardAt + this.timeoutMs <= now) {
      // Somebody else's answers on the same connection, or a part of a long one.
      if (this.#client?.stream?.bytesRead !== this.#bytesHeard) this.#noteHeard();
      else this.listener.onSilence();
    }
    if (!this.#client && this.#nextDueAt() <= now) this.listener.onStall();
  };
}
