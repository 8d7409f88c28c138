import { type Clock, NotSentError, ReplyTimeouts } from '../../../core/index.js';
import type { RedisClient } from './redis-client.js';
import type { Question } from './redis-servers.js';
import { PendingQuestion, type Sender, type Sending, Write } from './write.js';

/**
 * How many commands are under way at a time: enough to keep a server busy, and no more than it answers within some
 * milliseconds. A renewal has to wait for all that was sent before it.
 */
const MOST_UNDER_WAY = 500;
const ORDINARY: Sending = { bySource: false, isAlone: false };
/** Firewalls forget idle connections, and tell nobody. After this time a connection is tried before it is used. */
const IDLE_MS = 30_000;

/**
 * Sends commands to a client, a bounded number at a time, in the order of the calls, those of one turn in one write.
 * All others wait here: what keeps or frees a lease goes before what asks for one. A server is silent when nothing
 * comes from it, however long one answer takes among others.
 */
export abstract class CommandWindow implements Sender {
  /** Private: whoever prints a service must not print the client, which has the password. */
  #client: RedisClient | undefined;
  /** Whether the client may be sent to. */
  protected isOpen = false;
  readonly #timeouts: ReplyTimeouts;
  /** Keep or free a lease. */
  readonly #first: PendingQuestion[] = [];
  /** Want a lease. */
  readonly #second: PendingQuestion[] = [];
  readonly #underWay: PendingQuestion[] = [];
  #free = MOST_UNDER_WAY;
  /** How many of those under way wait for a confirmation. */
  #confirming = 0;
  #pumping = false;
  /** Whether a call is on its way by which the client sees for itself that its server only reads: one of a thousand does. */
  #isShowingError = false;
  #shutSince = 0;
  /** When the server was last heard, or had nothing to answer, and how many bytes had come by then. */
  #heardAt = 0;
  #bytesHeard: number | undefined;

  constructor(
    readonly timeoutMs: number,
    protected readonly clock: Clock,
    /** Calls whose keys are of different groups must not share a command. */
    protected groupOf: ((leaseKey: string) => number) | undefined,
  ) {
    this.#timeouts = new ReplyTimeouts(clock, timeoutMs, this.#nextDueAt, this.#onOverdue);
  }

  /** Something waits, and there is no client to send it. */
  protected abstract onNeed(): void;
  /** Something waits, and the connection may have died while it was idle. May shut the window. */
  protected abstract onIdle(): void;
  /** The server has said something. `answered`: it was no error. */
  protected abstract onSign(answered: boolean): void;
  /** Something is under way, and not a byte has come for too long. */
  protected abstract onSilence(): void;
  /** Something waits, and there has been no client for too long. */
  protected abstract onStall(): void;

  protected get client(): RedisClient | undefined {
    return this.#client;
  }

  protected set client(client: RedisClient | undefined) {
    this.#client = client;
  }

  /** Rejects with an error that may be logged. */
  ask<T>(leaseKey: string, question: Question<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const group = this.groupOf?.(leaseKey) ?? 0;
      const onReplies = (replies: readonly unknown[]): void => resolve(question.read(replies));
      const pending = new PendingQuestion(question, group, ORDINARY, this, onReplies, reject);
      this.#enter(pending, question.asker ? this.#second : this.#first);
    });
  }

  /** @internal */
  onHeard(answered: boolean): void {
    this.#noteHeard();
    this.onSign(answered);
  }

  /** @internal */
  onOver(pending: PendingQuestion): void {
    const { index, size, question, sending } = pending;
    if (sending.isAlone) this.#isShowingError = false;
    if (index < 0) return;
    const last = this.#underWay.pop();
    if (last && last !== pending) {
      this.#underWay[index] = last;
      last.index = index;
    }
    this.#free += size;
    if (question.confirmation) this.#confirming -= 1;
    if (this.#waiting > 0) this.#pumpSoon();
  }

  /** @internal */
  claimsError(): boolean {
    const isFirst = !this.#isShowingError;
    this.#isShowingError = true;
    return isFirst;
  }

  /** @internal */
  sendAgain({ question, group, resolve, reject }: PendingQuestion, sending: Sending): void {
    this.#enter(new PendingQuestion(question, group, sending, this, resolve, reject), this.#first);
  }

  /** @internal */
  abstract onErrorReply(error: Error): void;

  protected open(): void {
    this.isOpen = true;
    this.#noteHeard();
    this.#pumpSoon();
  }

  /** Until it is opened again all waits here. */
  protected shut(): void {
    this.isOpen = false;
    this.#shutSince = this.clock.now();
    if (this.#waiting > 0) this.#timeouts.start();
  }

  protected failUnderWay(error: Error): void {
    for (const pending of this.#underWay.slice()) pending.fail(error);
  }

  /** @param error why it is not sent */
  protected failWaiting(error: Error, by = Infinity): void {
    for (const lane of [this.#first, this.#second]) {
      const inTime = lane.findIndex((pending) => this.#lateFrom(pending) > by);
      for (const late of lane.splice(0, inTime < 0 ? lane.length : inTime)) late.fail(error);
    }
  }

  get #waiting(): number {
    return this.#first.length + this.#second.length;
  }

  #enter(pending: PendingQuestion, lane: PendingQuestion[]): void {
    // A question that enters an open window counts as old as its shutting.
    if (!this.isOpen) pending.enteredAt = this.clock.now();
    lane.push(pending);
    this.#pumpSoon();
    this.#timeouts.start();
  }

  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    process.nextTick(this.#pump);
  }

  readonly #pump = (): void => {
    this.#pumping = false;
    if (this.#waiting === 0 || this.#confirming > 0) return;
    if (this.isOpen && this.#underWay.length === 0) {
      if (this.clock.now() - this.#heardAt > IDLE_MS) this.onIdle();
      this.#noteHeard();
    }
    const { client } = this;
    if (!client || !this.isOpen) return this.onNeed();
    const write = new Write(client, this);
    const stream = this.#waiting > 1 ? client.stream : undefined;
    stream?.cork();
    this.#sendFrom(this.#first, write);
    this.#sendFrom(this.#second, write);
    write.end();
    stream?.uncork();
  };

  /** A question that its asker has abandoned is never sent. */
  #sendFrom(lane: PendingQuestion[], write: Write): void {
    let taken = 0;
    for (const pending of lane) {
      if (this.#free <= 0) break;
      taken += 1;
      const { size, question } = pending;
      if (question.asker?.onSend() === false) {
        pending.fail(new NotSentError('given up before it was sent'));
        continue;
      }
      pending.index = this.#underWay.push(pending) - 1;
      this.#free -= size;
      if (question.confirmation) this.#confirming += 1;
      write.add(pending);
    }
    if (taken > 0) lane.splice(0, taken);
  }

  #noteHeard(): void {
    this.#heardAt = this.clock.now();
    this.#bytesHeard = this.client?.stream?.bytesRead;
  }

  #lateFrom({ enteredAt }: PendingQuestion): number {
    return Math.max(enteredAt, this.#shutSince) + this.timeoutMs;
  }

  readonly #nextDueAt = (): number => {
    const silentFrom = this.#underWay.length > 0 ? this.#heardAt + this.timeoutMs : Infinity;
    if (this.isOpen) return silentFrom;
    const heads = [this.#first[0], this.#second[0]].filter((pending) => pending !== undefined);
    return Math.min(silentFrom, ...heads.map((pending) => this.#lateFrom(pending)));
  };

  readonly #onOverdue = (): void => {
    const now = this.clock.now();
    if (this.#underWay.length > 0 && this.#heardAt + this.timeoutMs <= now) {
      // Somebody else's answers on the same connection, or a part of a long one.
      if (this.client?.stream?.bytesRead !== this.#bytesHeard) this.#noteHeard();
      else this.onSilence();
    }
    if (!this.isOpen && this.#nextDueAt() <= now) this.onStall();
  };
}
