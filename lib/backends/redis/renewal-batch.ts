import type { RenewalListener } from '../../core/index.js';
import { SLOTS } from './cluster-slots.js';
import { cleanError } from './redis-error.js';
import { NO_REPLICAS } from './replica-check.js';
import { asDigits } from './redis-reply.js';
import { RENEW } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';

/** A script blocks the server while it runs: so many keys take it about a third of a millisecond. */
const LARGEST_BATCH = 250;

interface Renewal {
  readonly leaseKey: string;
  readonly owner: string;
  readonly listener: RenewalListener;
}

/** Renewals for the same TTL, of keys that may share a script call. */
interface Group {
  readonly ttlMs: number;
  readonly renewals: Renewal[];
}

/** Sends the renewals of one turn as few script calls, so that a thousand locks on one server cost four calls a round. */
export class RenewalBatch {
  /** By TTL and group of the key. */
  #pending = new Map<number, Group>();

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
    const wholeMs = Math.ceil(ttlMs);
    const id = wholeMs * SLOTS + this.servers.groupOf(leaseKey);
    const group = this.#pending.get(id) ?? this.#open(id, wholeMs);
    group.renewals.push({ leaseKey, owner, listener });
  }

  #open(id: number, ttlMs: number): Group {
    if (this.#pending.size === 0) queueMicrotask(this.#flush);
    const group = { ttlMs, renewals: [] };
    this.#pending.set(id, group);
    return group;
  }

  readonly #flush = (): void => {
    const pending = this.#pending;
    this.#pending = new Map();
    for (const { ttlMs, renewals } of pending.values()) {
      for (let i = 0; i < renewals.length; i += LARGEST_BATCH)
        void this.#send(renewals.slice(i, i + LARGEST_BATCH), ttlMs);
    }
  };

  async #send(batch: readonly Renewal[], ttlMs: number): Promise<void> {
    const { answers, failure } = await this.#ask(batch, ttlMs);
    for (const [place, { listener }] of batch.entries()) {
      if (answers !== undefined && answers[place] !== '1') listener.onAnswer(false);
      else if (failure) listener.onFailure(failure);
      else listener.onAnswer(true);
    }
  }

  /** Answers with a failure: what is lost is lost, of the rest nothing is known. */
  async #ask(batch: readonly Renewal[], ttlMs: number): Promise<{ answers?: string; failure?: Error }> {
    const keys = batch.map(({ leaseKey }) => leaseKey);
    const owners = batch.map(({ owner }) => owner).join('|');
    let answers: string | undefined;
    try {
      const renew = RENEW.call(keys, [ttlMs, `${owners}|`]);
      const [reply, copies] = await this.servers.ask(keys[0] ?? '', renew, ...this.replicas.requests);
      answers = asDigits(reply, batch.length);
      this.replicas.assert(copies);
      return { answers };
    } catch (error) {
      return { ...(answers === undefined ? {} : { answers }), failure: cleanError(error) };
    }
  }
}
