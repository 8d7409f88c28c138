import { type Holder, systemClock, unpackHolder } from '../../core/index.js';
import { isOwn, splitFields } from '../redis/scripts/lease-value.js';
import type { ClientSource } from '../redis/connection/redis-client.js';
import { RedisConnection } from '../redis/connection/redis-connection.js';
import { asList } from '../redis/scripts/redis-reply.js';
import { RENEW } from '../redis/scripts/lease-scripts.js';
import type { Asked } from './quorum-call.js';
import { TAKE_BACK, VOTE } from './redlock-scripts.js';
import type { TokenWindow } from './token-clock.js';

/** Asks a node for a key. */
export interface Candidacy {
  readonly keys: readonly [lease: string, fence: string, since: string];
  readonly owner: string;
  /** Greater than that of every attempt before for the same owner. */
  readonly attempt: number;
  readonly ttlMs: number;
  readonly metadata: string;
}

export type Vote =
  | { readonly kind: 'granted' }
  | {
      readonly kind: 'held';
      readonly owner: string;
      /** Infinity for a lease without an end. */
      readonly leftMs: number;
      readonly holder: Holder | undefined;
    }
  | ({ readonly kind: 'refused'; readonly clock: number; readonly problem: string } & TokenWindow);

export interface VotingRules {
  readonly maxSkewMs: number;
  readonly restartQuarantineMs: number;
}

/** Greater than the number of any attempt. */
const EVERY_ATTEMPT = Number.MAX_SAFE_INTEGER;

interface Debt {
  readonly leaseKey: string;
  /** The last attempt whose vote is to be taken back. */
  readonly attempt: number;
}

/** How many failed releases are kept for a node's return. The leases of others end with their TTL. */
const MOST_OWED = 1_000;

/** A process that starts is busy, and so may be the machine. */
const LONGEST_GREETING_MS = 2_000;

/** One of the masters. All errors name it. */
export class RedlockNode implements Asked {
  readonly #connection: RedisConnection;
  /** Votes that were asked for and are not known yet, by their owners. */
  readonly #voting = new Map<string, Promise<unknown>>();
  /** Releases that failed, by their owners. */
  readonly #owed = new Map<string, Debt>();

  constructor(
    readonly name: string,
    source: ClientSource,
    private readonly timeoutMs: number,
    private readonly rules: VotingRules,
  ) {
    this.#connection = new RedisConnection(source, timeoutMs);
    this.health.onChange(({ status }) => status === 'up' && this.#settleDebts());
  }

  get health(): RedisConnection['health'] {
    return this.#connection.health;
  }

  get down(): boolean {
    return this.health.current.status === 'down';
  }

  /** Makes the client. The time to load it must not pass for a server's silence. @throws LockConfigurationError */
  prepare(): Promise<void> {
    return this.#connection.prepare();
  }

  /** Connects, which may take longer than an answer of a node that is connected. Rejects at once when the node refuses. */
  async greet(): Promise<void> {
    const giveUpAt = systemClock.now() + LONGEST_GREETING_MS;
    for (;;) {
      const askedAt = systemClock.now();
      try {
        await this.#naming(this.#connection.send('TIME'));
        return;
      } catch (error) {
        const silent = systemClock.now() - askedAt >= this.timeoutMs;
        if (!silent || systemClock.now() >= giveUpAt) throw error;
      }
    }
  }

  /** Asking again with a greater token raises that of a lease of the same owner. */
  vote(candidacy: Candidacy, token: number): Promise<Vote> {
    const vote = this.#vote(candidacy, token);
    this.#noteVoting(candidacy.owner, vote);
    return vote;
  }

  async renew(leaseKey: string, owner: string, ttlMs: number): Promise<boolean> {
    return Number(await this.#naming(this.#connection.run(RENEW, [leaseKey], [owner, Math.ceil(ttlMs)]))) === 1;
  }

  async isHeldBy(leaseKey: string, owner: string): Promise<boolean> {
    return isOwn(await this.#naming(this.#connection.send('GET', leaseKey)), owner);
  }

  /** Never overtakes a vote. A release that fails is repeated when the node is back. */
  async release(leaseKey: string, owner: string): Promise<boolean> {
    await this.#voting.get(owner);
    return this.takeBack(owner, { leaseKey, attempt: EVERY_ATTEMPT });
  }

  /**
   * Frees the lease of this attempt or an earlier one of the owner, never that of a later one: it may arrive at any time.
   * Repeated when the node is back, if it fails.
   */
  async takeBack(owner: string, debt: Debt): Promise<boolean> {
    try {
      const freed = await this.#naming(this.#connection.run(TAKE_BACK, [debt.leaseKey], [owner, debt.attempt]));
      if ((this.#owed.get(owner)?.attempt ?? 0) <= debt.attempt) this.#owed.delete(owner);
      return Number(freed) === 1;
    } catch (error) {
      this.#owe(owner, debt);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #vote({ keys, owner, attempt, ttlMs, metadata }: Candidacy, token: number): Promise<Vote> {
    const { maxSkewMs, restartQuarantineMs } = this.rules;
    const args = [owner, attempt, token, ttlMs, metadata, Math.round(maxSkewMs * 1_000), restartQuarantineMs];
    const [kind, ...details] = asList(await this.#naming(this.#connection.run(VOTE, keys, args)));
    if (kind === 'granted') {
      this.health.advise('clock', undefined);
      return { kind };
    }
    if (kind === 'held') return held(Number(details[0]), String(details[1]));
    if (kind === 'young') {
      throw new Error(
        `${this.name}: started ${String(details[0])} s ago, and does not vote for ${restartQuarantineMs} ms`,
      );
    }
    const [floor = NaN, ceiling = NaN, clock = NaN] = details.map(Number);
    const problem = clockProblem((clock - token) / 1_000, maxSkewMs);
    this.health.advise('clock', problem);
    return { kind: 'refused', floor, ceiling, clock, problem: problem ?? 'it remembers a newer token' };
  }

  #noteVoting(owner: string, vote: Promise<unknown>): void {
    const known = Promise.allSettled([vote, this.#voting.get(owner)]).finally(() => {
      if (this.#voting.get(owner) === known) this.#voting.delete(owner);
    });
    this.#voting.set(owner, known);
  }

  #owe(owner: string, debt: Debt): void {
    if ((this.#owed.get(owner)?.attempt ?? 0) < debt.attempt) this.#owed.set(owner, debt);
    if (this.#owed.size <= MOST_OWED) return;
    const [oldest] = this.#owed.keys();
    if (oldest !== undefined) this.#owed.delete(oldest);
  }

  #settleDebts(): void {
    for (const [owner, debt] of this.#owed) this.takeBack(owner, debt).catch(() => undefined);
  }

  async #naming<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw new Error(`${this.name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

function clockProblem(aheadMs: number, maxSkewMs: number): string | undefined {
  if (Math.abs(aheadMs) <= maxSkewMs) return undefined;
  const off = `${Math.round(Math.abs(aheadMs))} ms ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  return `its clock is ${off} the token that was proposed, which is more than maxSkewMs (${maxSkewMs})`;
}

function held(leftMs: number, lease: string): Vote {
  const [owner = lease, token = '', , metadata = ''] = splitFields(lease, 4) ?? [];
  const holder = unpackHolder(metadata, new Date(Number(token) / 1_000));
  return { kind: 'held', owner, leftMs: leftMs < 0 ? Infinity : leftMs, holder };
}
