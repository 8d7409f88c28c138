import { errorText, systemClock } from '../../core/index.js';
import { asList, isLeaseOf, textOrEmpty, splitFields } from '../redis/scripts/redis-values.js';
import type { ClientSource, RedisCommand } from '../redis/connection/redis-client.js';
import { RedisConnection } from '../redis/connection/redis-connection.js';
import { RENEW } from '../redis/scripts/lease-scripts.js';
import type { ScriptCall } from '../redis/scripts/redis-script.js';
import { type NodeLease, parseNodeLease } from './node-lease.js';
import type { RedlockSettings } from './options.js';
import { EVICT, JOIN, TAKE_BACK, VOTE } from './redlock-scripts.js';
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

/** A candidacy for a lease that the owner has on other nodes already. */
export interface JoinCandidacy extends Candidacy {
  /** The token of the owner's acquisition. */
  readonly token: number;
}

export type Vote =
  | { readonly kind: 'granted' }
  | ({ readonly kind: 'held' } & NodeLease)
  | ({ readonly kind: 'refused'; readonly clock: number; readonly error: Error } & TokenWindow);

/** Greater than the number of any attempt. */
const EVERY_ATTEMPT = Number.MAX_SAFE_INTEGER;

/** The last attempt of an owner whose vote is to be taken back. */
interface Debt {
  readonly leaseKey: string;
  readonly attempt: number;
}

/**
 * How many failed releases are kept for a node's return. The leases of others end with their TTL. As many may be under
 * way in the background.
 */
const MOST_OWED = 1_000;

/** A process that starts is busy, and so may be the machine. */
const LONGEST_GREETING_MS = 2_000;

/** One of the masters. All errors name it. */
export class RedlockNode {
  readonly connection: RedisConnection;
  /** Votes that were asked for and are not answered yet, by their owners. */
  readonly #openVotes = new Map<string, Set<Promise<unknown>>>();
  /** Number of releases under way. */
  #releasing = 0;
  /** Releases that failed, by their owners. */
  readonly #owed = new Map<string, Debt>();

  constructor(
    readonly name: string,
    source: ClientSource,
    private readonly settings: RedlockSettings,
  ) {
    this.connection = new RedisConnection(source, settings.requestTimeoutMs);
    this.health.onChange(({ status }) => {
      if (status !== 'up') return;
      for (const [owner, debt] of this.#owed) this.takeBack(owner, debt).catch(() => undefined);
    });
  }

  get health(): RedisConnection['health'] {
    return this.connection.health;
  }

  get down(): boolean {
    return this.health.current.status === 'down';
  }

  /** Connects, which may take longer than an answer of a connected node. Rejects at once when the node refuses. */
  async greet(): Promise<void> {
    const abandonAt = systemClock.now() + LONGEST_GREETING_MS;
    for (;;) {
      const askedAt = systemClock.now();
      try {
        await this.#ask(['TIME']);
        return;
      } catch (error) {
        const silent = systemClock.now() - askedAt >= this.settings.requestTimeoutMs;
        if (!silent || systemClock.now() >= abandonAt) throw error;
      }
    }
  }

  /** Whether so many releases wait for this node that the next caller has to wait for it, too. */
  get isBehind(): boolean {
    return this.#releasing > MOST_OWED;
  }

  /** Asking again with a greater token raises that of a lease of the same owner. */
  vote(candidacy: Candidacy, token: number): Promise<Vote> {
    return this.#vote(candidacy, token, { script: VOTE, keys: candidacy.keys, args: this.#voteArgs(candidacy, token) });
  }

  /** A vote for an owner whose lease other nodes have. @throws Error when the owner was evicted from this node */
  join(candidacy: JoinCandidacy, proposal: number): Promise<Vote> {
    const keys = [...candidacy.keys, evictedKeyOf(candidacy.keys[0])];
    const args = [...this.#voteArgs(candidacy, proposal), candidacy.token];
    return this.#vote(candidacy, proposal, { script: JOIN, keys, args });
  }

  async renew(leaseKey: string, owner: string, ttlMs: number): Promise<boolean> {
    return Number(await this.#ask({ script: RENEW, keys: [leaseKey], args: [owner, Math.ceil(ttlMs)] })) === 1;
  }

  async isHeldBy(leaseKey: string, owner: string): Promise<boolean> {
    return isLeaseOf(await this.#ask(['GET', leaseKey]), owner);
  }

  async look(leaseKey: string): Promise<NodeLease> {
    const [left, lease] = await Promise.all([this.#ask(['PTTL', leaseKey]), this.#ask(['GET', leaseKey])]);
    return parseNodeLease(Number(left), textOrEmpty(lease));
  }

  /** Returns the attempt, the token and the metadata of the owner's lease; `undefined` when the node does not have it. */
  async readLease(leaseKey: string, owner: string): Promise<Omit<JoinCandidacy, 'keys' | 'ttlMs'> | undefined> {
    const lease = textOrEmpty(await this.#ask(['GET', leaseKey]));
    const [holder, token, attempt, metadata = ''] = splitFields(lease, 4);
    return holder === owner ? { owner, token: Number(token), attempt: Number(attempt), metadata } : undefined;
  }

  /**
   * Does not wait for a vote that is not answered yet, and is repeated when the node answers the vote after it: requests
   * that wait for a connection share commands, and a script that the node does not know is sent again. A release that
   * fails is repeated when the node is back.
   */
  async release(leaseKey: string, owner: string): Promise<boolean> {
    const debt = { leaseKey, attempt: EVERY_ATTEMPT };
    let openVotes: ReadonlySet<Promise<unknown>> | undefined;
    const freed = await this.takeBack(owner, debt, () => (openVotes = this.#openVotes.get(owner)));
    if (!openVotes) return freed;
    await Promise.allSettled(openVotes);
    return (await this.takeBack(owner, debt)) || freed;
  }

  /** Frees the lease of an owner in any process, which then cannot join here. If it fails, the release is repeated. */
  evict(leaseKey: string, owner: string): Promise<boolean> {
    const request = { script: EVICT, keys: [leaseKey, evictedKeyOf(leaseKey)], args: [owner] };
    return this.#free(owner, { leaseKey, attempt: EVERY_ATTEMPT }, request);
  }

  /**
   * Frees the lease of this attempt or an earlier one of the owner, never that of a later one: it may arrive at any
   * time. Repeated when the node is back, if it fails.
   */
  takeBack(owner: string, debt: Debt, onReply?: () => void): Promise<boolean> {
    const { leaseKey, attempt } = debt;
    return this.#free(owner, debt, { script: TAKE_BACK, keys: [leaseKey], args: [owner, attempt] }, onReply);
  }

  async #free(owner: string, debt: Debt, request: ScriptCall, onReply?: () => void): Promise<boolean> {
    this.#releasing += 1;
    try {
      const freed = await this.#ask(request, onReply);
      if ((this.#owed.get(owner)?.attempt ?? 0) <= debt.attempt) this.#owed.delete(owner);
      return Number(freed) === 1;
    } catch (error) {
      if ((this.#owed.get(owner)?.attempt ?? 0) < debt.attempt) this.#owed.set(owner, debt);
      const [oldest = owner] = this.#owed.keys();
      if (this.#owed.size > MOST_OWED) this.#owed.delete(oldest);
      throw error;
    } finally {
      this.#releasing -= 1;
    }
  }

  #voteArgs({ owner, attempt, ttlMs, metadata }: Candidacy, token: number): ScriptCall['args'] {
    const { maxSkewMs, restartQuarantineMs } = this.settings;
    return [owner, attempt, token, ttlMs, metadata, Math.round(maxSkewMs * 1_000), restartQuarantineMs];
  }

  async #vote({ owner }: Candidacy, token: number, request: ScriptCall): Promise<Vote> {
    const { maxSkewMs, restartQuarantineMs } = this.settings;
    const [kind, ...details] = asList(await this.#askForVote(owner, request));
    if (kind === 'granted') {
      this.health.advise('clock', undefined);
      return { kind };
    }
    if (kind === 'held') return { kind, ...parseNodeLease(Number(details[0]), String(details[1])) };
    if (kind === 'young') {
      const age = `started ${String(details[0])} s ago`;
      throw new Error(`${this.name}: ${age}, and does not vote for ${restartQuarantineMs} ms`);
    }
    if (kind === 'evicted') throw new Error(`${this.name}: the owner was evicted`);
    const [floor = NaN, ceiling = NaN, clock = NaN] = details.map(Number);
    const problem = clockProblem((clock - token) / 1_000, maxSkewMs);
    this.health.advise('clock', problem);
    const error = new Error(`${this.name}: refuses the token: ${problem ?? 'it remembers a newer token'}`);
    return { kind: 'refused', floor, ceiling, clock, error };
  }

  async #askForVote(owner: string, request: ScriptCall): Promise<unknown> {
    const votes = this.#openVotes.get(owner) ?? new Set();
    const close = (): void => {
      votes.delete(answer);
      if (votes.size === 0 && this.#openVotes.get(owner) === votes) this.#openVotes.delete(owner);
    };
    const answer = this.#ask(request, close);
    this.#openVotes.set(owner, votes.add(answer));
    try {
      return await answer;
    } finally {
      close();
    }
  }

  /** @param onReply is called in the order of the node's replies, which promises do not keep */
  async #ask(request: RedisCommand | ScriptCall, onReply?: () => void): Promise<unknown> {
    const read = ([reply]: readonly unknown[]): unknown => {
      onReply?.();
      return reply;
    };
    try {
      return await this.connection.send('', { commands: [request], read });
    } catch (error) {
      throw new Error(`${this.name}: ${errorText(error)}`, { cause: error });
    }
  }
}

function evictedKeyOf(leaseKey: string): string {
  return `${leaseKey}:e`;
}

function clockProblem(aheadMs: number, maxSkewMs: number): string | undefined {
  if (Math.abs(aheadMs) <= maxSkewMs) return undefined;
  const off = `${Math.round(Math.abs(aheadMs))} ms ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  return `its clock is ${off} the token that was proposed, which is more than maxSkewMs (${maxSkewMs})`;
}
