import type { RenewalListener } from '../../core/index.js';
import { SLOTS } from './cluster-slots.js';
import { cleanError } from './redis-error.js';
import { NO_REPLICAS, type ReplicaCheck } from './replica-check.js';
import { asDigits } from './redis-reply.js';
import { RENEW, type ScriptCall } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';

/** A script blocks the server while it runs: so many keys take it about a third of a millisecond. */
const LARGEST_CALL = 250;

/** One script call: renewals for the same TTL, of keys that may share it. Lists side by side, for there may be very many. */
class Renewals {
  readonly #keys: string[] = [];
  readonly #owners: string[] = [];
  readonly #listeners: RenewalListener[] = [];

  constructor(private readonly ttlMs: number) {}

  get full(): boolean {
    return this.#keys.length >= LARGEST_CALL;
  }

  add(leaseKey: string, owner: string, listener: RenewalListener): void {
    this.#keys.push(leaseKey);
    this.#owners.push(owner);
    this.#listeners.push(listener);
  }

  /** What is lost is lost, also when something fails that leaves the rest unknown. */
  async askFor(servers: RedisServers, replicas: ReplicaCheck): Promise<void> {
    let answers: string | undefined;
    let failure: Error | undefined;
    try {
      const [reply, copies] = await servers.ask(this.#keys[0] ?? '', this.#call, ...replicas.requests);
      answers = asDigits(reply, this.#keys.length);
      replicas.assert(copies);
    } catch (error) {
      failure = cleanError(error);
    }
    this.#listeners.forEach((listener, place) => {
      if (answers !== undefined && answers[place] !== '1') listener.onAnswer(false);
      else if (failure) listener.onFailure(failure);
      else listener.onAnswer(true);
    });
  }

  get #call(): ScriptCall {
    return RENEW.call(this.#keys, [this.ttlMs, `${this.#owners.join('|')}|`]);
  }
}

/** Sends the renewals of one turn as few script calls, so that a thousand locks on one server cost four calls a round. */
export class RenewalBatch {
  /** Those of this turn, made anew for each: a map that lives on leaves its former tables behind, see `LinkedQueue`. */
  #calls: Renewals[] = [];
  /** The last of each TTL and group of keys. */
  #open = new Map<number, Renewals>();

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
    const open = this.#open.get(id);
    const renewals = open?.full === false ? open : this.#begin(id, wholeMs);
    renewals.add(leaseKey, owner, listener);
  }

  #begin(id: number, ttlMs: number): Renewals {
    if (this.#calls.length === 0) queueMicrotask(this.#send);
    const renewals = new Renewals(ttlMs);
    this.#calls.push(renewals);
    this.#open.set(id, renewals);
    return renewals;
  }

  readonly #send = (): void => {
    const calls = this.#calls;
    this.#calls = [];
    this.#open = new Map();
    for (const renewals of calls) void renewals.askFor(this.servers, this.replicas);
  };
}
