import type { RenewalListener } from '../../core/index.js';
import { cleanError } from './redis-error.js';
import { NO_REPLICAS } from './replica-check.js';
import { asList } from './redis-reply.js';
import { RENEW } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';

/** A script blocks the server while it runs: so many keys take it about a third of a millisecond. */
const LARGEST_BATCH = 250;

interface Renewal {
  readonly leaseKey: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly listener: RenewalListener;
}

/** Sends the renewals of one turn as few script calls, so that a thousand locks on one server cost four calls a round. */
export class RenewalBatch {
  #pending = new Map<number, Renewal[]>();

  constructor(
    private readonly servers: RedisServers,
    private readonly replicas = NO_REPLICAS,
  ) {}

  /** Whether the lease is still `owner`'s, for another `ttlMs`. A call that fails rejects all that were in it. */
  renew(leaseKey: string, owner: string, ttlMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.renewFor(leaseKey, owner, ttlMs, { onAnswer: resolve, onFailure: reject });
    });
  }

  renewFor(leaseKey: string, owner: string, ttlMs: number, listener: RenewalListener): void {
    const renewal = { leaseKey, owner, ttlMs: Math.ceil(ttlMs), listener };
    const group = this.servers.groupOf(leaseKey);
    const together = this.#pending.get(group);
    if (together) together.push(renewal);
    else this.#open(group, renewal);
  }

  #open(group: number, first: Renewal): void {
    if (this.#pending.size === 0) queueMicrotask(this.#flush);
    this.#pending.set(group, [first]);
  }

  readonly #flush = (): void => {
    const pending = this.#pending;
    this.#pending = new Map();
    for (const group of pending.values()) {
      for (let i = 0; i < group.length; i += LARGEST_BATCH) void this.#send(group.slice(i, i + LARGEST_BATCH));
    }
  };

  async #send(batch: readonly Renewal[]): Promise<void> {
    const { answers, failure } = await this.#ask(batch);
    for (const [place, { listener }] of batch.entries()) {
      if (answers && Number(answers[place]) !== 1) listener.onAnswer(false);
      else if (failure) listener.onFailure(failure);
      else listener.onAnswer(true);
    }
  }

  /** Answers with a failure: what is lost is lost, of the rest nothing is known. */
  async #ask(batch: readonly Renewal[]): Promise<{ answers?: readonly unknown[]; failure?: Error }> {
    const keys = batch.map(({ leaseKey }) => leaseKey);
    const terms = batch.map(({ owner, ttlMs }) => `${owner}|${ttlMs}|`).join('');
    let answers: readonly unknown[] | undefined;
    try {
      const renew = RENEW.call(keys, [terms]);
      const [reply, copies] = await this.servers.ask(keys[0] ?? '', renew, ...this.replicas.requests);
      answers = asList(reply);
      this.replicas.assert(copies);
      return { answers };
    } catch (error) {
      return { ...(answers ? { answers } : {}), failure: cleanError(error) };
    }
  }
}
