import { errorText, systemClock } from '../../core/index.js';
import { asList, isLeaseOf, splitFields, textOrEmpty } from '../redis/scripts/redis-values.js';
import type { ClientSource, RedisCommand } from '../redis/connection/redis-client.js';
import { RedisConnection } from '../redis/connection/redis-connection.js';
import { RENEW } from '../redis/scripts/lease-scripts.js';
import type { ScriptCall } from '../redis/scripts/redis-script.js';
import { type NodeLease, parseNodeLease } from './node-lease.js';
import type { RedlockSettings } from './options.js';
import { EVICT, JOIN, TAKE_BACK, VOTE } from './redlock-scripts.js';
import type { ServerIdentities } from './server-identities.js';
import type { TokenWindow } from './token-clock.js';

/** An owner's request for a key, on which each node votes. */
export interface Candidacy {
  readonly keys: readonly [lease: string, fence: string, dataSince: string];
  readonly owner: string;
  /** Number of the attempt, greater than that of each earlier attempt of the same owner. */
  readonly attempt: number;
  readonly ttlMs: number;
  readonly metadata: string;
}

/** An owner's request for a key whose lease it already has on other nodes. */
export interface JoinCandidacy extends Candidacy {
  /** Token of the owner's acquisition. */
  readonly token: number;
}

export type Vote =
  | { readonly kind: 'granted' }
  | ({ readonly kind: 'held' } & NodeLease)
  | ({ readonly kind: 'refused'; readonly clockUs: number; readonly error: Error } & TokenWindow);

const ALL_ATTEMPTS = Number.MAX_SAFE_INTEGER;

/** Release of the lease of `attempt` or of an earlier attempt of the same owner. */
interface AttemptRelease {
  readonly leaseKey: string;
  readonly attempt: number;
}

/** Number of releases under way above which a further release waits for the node. */
const MAX_RELEASES_UNDER_WAY = 1_000;
/** Maximum number of failed releases kept until the node is up again. Leases of dropped releases end with their TTL. */
const MAX_FAILED_RELEASES = 1_000;

/** Time for which a first connection is retried, because the process and its machine may be busy at the start. */
const MAX_FIRST_CONNECT_MS = 2_000;

export class RedlockNode {
  readonly connection: RedisConnection;
  readonly #openVotesByOwner = new Map<string, Set<Promise<unknown>>>();
  #releaseUnderWayCount = 0;
  readonly #failedReleases = new Map<string, AttemptRelease>();

  constructor(
    readonly name: string,
    source: ClientSource,
    private readonly settings: RedlockSettings,
    private readonly identities: ServerIdentities,
  ) {
    this.connection = new RedisConnection(source, settings.requestTimeoutMs, systemClock, { prefix: settings.prefix });
    this.health.onChange(({ status }) => {
      if (status === 'down') identities.forget(name);
      if (status !== 'up') return;
      for (const [owner, release] of this.#failedReleases) this.takeBack(owner, release).catch(() => undefined);
    });
  }

  get health(): RedisConnection['health'] {
    return this.connection.health;
  }

  get isDown(): boolean {
    return this.health.current.status === 'down';
  }

  /** Whether so many releases are under way that a further release has to wait for this node. */
  get hasTooManyReleases(): boolean {
    return this.#releaseUnderWayCount > MAX_RELEASES_UNDER_WAY;
  }

  /** Retries when the node does not answer, and rejects at once when it answers with an error. */
  async connect(): Promise<void> {
    const deadline = systemClock.now() + MAX_FIRST_CONNECT_MS;
    for (;;) {
      const sentAt = systemClock.now();
      try {
        await this.#sendToUniqueServer(['TIME']);
        return;
      } catch (error) {
        const isSilent = systemClock.now() - sentAt >= this.settings.requestTimeoutMs;
        if (!isSilent || systemClock.now() >= deadline) throw error;
      }
    }
  }

  /** Asks the node for its vote. If granted, a lease that the owner already has there gets the new token. */
  requestVote(candidacy: Candidacy, token: number): Promise<Vote> {
    const args = this.#voteArgs(candidacy, token);
    return this.#requestVoteByScript(candidacy, token, { script: VOTE, keys: candidacy.keys, args });
  }

  /** @throws Error when the owner was evicted */
  requestJoin(candidacy: JoinCandidacy, proposal: number): Promise<Vote> {
    const keys = [...candidacy.keys, evictedKeyOf(candidacy.keys[0])];
    const args = [...this.#voteArgs(candidacy, proposal), candidacy.token];
    return this.#requestVoteByScript(candidacy, proposal, { script: JOIN, keys, args });
  }

  async renew(leaseKey: string, owner: string, ttlMs: number): Promise<boolean> {
    const call = { script: RENEW, keys: [leaseKey], args: [owner, Math.ceil(ttlMs)] };
    return Number(await this.#sendToUniqueServer(call)) === 1;
  }

  async isHeldBy(leaseKey: string, owner: string): Promise<boolean> {
    return isLeaseOf(await this.#sendToUniqueServer(['GET', leaseKey]), owner);
  }

  async readLease(leaseKey: string): Promise<NodeLease> {
    const [leftMs, lease] = await Promise.all([
      this.#sendToUniqueServer(['PTTL', leaseKey]),
      this.sendCommand(['GET', leaseKey]),
    ]);
    return parseNodeLease(Number(leftMs), textOrEmpty(lease));
  }

  /** Resolves to `undefined` when the node does not have a lease of this owner. */
  async readLeaseOf(owner: string, leaseKey: string): Promise<Omit<JoinCandidacy, 'keys' | 'ttlMs'> | undefined> {
    const lease = textOrEmpty(await this.sendCommand(['GET', leaseKey]));
    const [leaseOwner, token, attempt, metadata = ''] = splitFields(lease, 4);
    return leaseOwner === owner ? { owner, token: Number(token), attempt: Number(attempt), metadata } : undefined;
  }

  /**
   * Releases the lease, and once more after the votes that were open when the node replied. A vote whose script the
   * node does not know is sent again, and may then arrive after a later release.
   */
  async release(leaseKey: string, owner: string): Promise<boolean> {
    const release = { leaseKey, attempt: ALL_ATTEMPTS };
    let openVotes: ReadonlySet<Promise<unknown>> | undefined;
    const isReleased = await this.takeBack(owner, release, () => (openVotes = this.#openVotesByOwner.get(owner)));
    if (!openVotes) return isReleased;
    await Promise.allSettled(openVotes);
    return (await this.takeBack(owner, release)) || isReleased;
  }

  /** Releases the lease of an owner, and has the node refuse the owner's JOIN. A retry only releases the lease. */
  evict(leaseKey: string, owner: string): Promise<boolean> {
    const call = { script: EVICT, keys: [leaseKey, evictedKeyOf(leaseKey)], args: [owner] };
    return this.#release(owner, { leaseKey, attempt: ALL_ATTEMPTS }, call);
  }

  /**
   * Releases the lease of the given attempt or of an earlier one, but never that of a later attempt, however late the
   * command arrives. A release that fails is repeated when the node is up again.
   */
  takeBack(owner: string, release: AttemptRelease, onReply?: () => void): Promise<boolean> {
    const { leaseKey, attempt } = release;
    return this.#release(owner, release, { script: TAKE_BACK, keys: [leaseKey], args: [owner, attempt] }, onReply);
  }

  async #release(owner: string, release: AttemptRelease, call: ScriptCall, onReply?: () => void): Promise<boolean> {
    this.#releaseUnderWayCount += 1;
    try {
      const releasedCount = await this.sendCommand(call, onReply);
      if ((this.#failedReleases.get(owner)?.attempt ?? 0) <= release.attempt) this.#failedReleases.delete(owner);
      return Number(releasedCount) === 1;
    } catch (error) {
      if ((this.#failedReleases.get(owner)?.attempt ?? 0) < release.attempt) this.#failedReleases.set(owner, release);
      const [oldestOwner = owner] = this.#failedReleases.keys();
      if (this.#failedReleases.size > MAX_FAILED_RELEASES) this.#failedReleases.delete(oldestOwner);
      throw error;
    } finally {
      this.#releaseUnderWayCount -= 1;
    }
  }

  #voteArgs({ owner, attempt, ttlMs, metadata }: Candidacy, token: number): ScriptCall['args'] {
    const { maxSkewMs, restartQuarantineMs } = this.settings;
    return [owner, attempt, token, ttlMs, metadata, Math.round(maxSkewMs * 1_000), restartQuarantineMs];
  }

  async #requestVoteByScript({ owner }: Candidacy, token: number, call: ScriptCall): Promise<Vote> {
    const { maxSkewMs, restartQuarantineMs } = this.settings;
    const [kind, ...details] = asList(await this.#sendVote(owner, call));
    if (kind === 'granted') {
      this.health.setAdvice('clock', undefined);
      return { kind };
    }
    if (kind === 'held') return { kind, ...parseNodeLease(Number(details[0]), String(details[1])) };
    if (kind === 'young') {
      const age = `started ${String(details[0])} s ago`;
      throw new Error(`${this.name}: ${age}, and does not vote for ${restartQuarantineMs} ms`);
    }
    if (kind === 'evicted') throw new Error(`${this.name}: the owner was evicted`);
    const [floor = NaN, ceiling = NaN, clockUs = NaN] = details.map(Number);
    const skewDescription = describeClockSkew((clockUs - token) / 1_000, maxSkewMs);
    this.health.setAdvice('clock', skewDescription);
    const error = new Error(`${this.name}: refuses the token: ${skewDescription ?? 'it remembers a newer token'}`);
    return { kind: 'refused', floor, ceiling, clockUs, error };
  }

  async #sendVote(owner: string, call: ScriptCall): Promise<unknown> {
    const openVotes = this.#openVotesByOwner.get(owner) ?? new Set();
    const closeVote = (): void => {
      openVotes.delete(votePromise);
      if (openVotes.size === 0 && this.#openVotesByOwner.get(owner) === openVotes) this.#openVotesByOwner.delete(owner);
    };
    const votePromise = this.#sendToUniqueServer(call, closeVote);
    this.#openVotesByOwner.set(owner, openVotes.add(votePromise));
    try {
      return await votePromise;
    } finally {
      closeVote();
    }
  }

  /** Rejects when another node is the same server, whose answer would count twice. */
  async #sendToUniqueServer(command: RedisCommand | ScriptCall, onReply?: () => void): Promise<unknown> {
    const identificationPromise = this.identities.assertUnique(this);
    const [reply] = await Promise.all([this.sendCommand(command, onReply), identificationPromise]);
    return reply;
  }

  /** @param onReply called in the order of the node's replies. The order of reactions to the promises may differ. */
  readonly sendCommand = async (command: RedisCommand | ScriptCall, onReply?: () => void): Promise<unknown> => {
    const read = ([reply]: readonly unknown[]): unknown => {
      onReply?.();
      return reply;
    };
    try {
      const leaseKey = 'script' in command ? (command.keys[0] ?? '') : '';
      return await this.connection.send(leaseKey, { commands: [command], read });
    } catch (error) {
      throw new Error(`${this.name}: ${errorText(error)}`, { cause: error });
    }
  };
}

function evictedKeyOf(leaseKey: string): string {
  return `${leaseKey}:e`;
}

function describeClockSkew(nodeAheadMs: number, maxSkewMs: number): string | undefined {
  if (Math.abs(nodeAheadMs) <= maxSkewMs) return undefined;
  const difference = `${Math.round(Math.abs(nodeAheadMs))} ms ${nodeAheadMs > 0 ? 'ahead of' : 'behind'}`;
  return `its clock is ${difference} the token that was proposed, which is more than maxSkewMs (${maxSkewMs})`;
}
