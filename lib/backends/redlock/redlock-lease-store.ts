import {
  type BackendHealth,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockBackendError,
  packMetadata,
  systemClock,
} from '../../core/index.js';
import { pause } from '../../core/timers.js';
import { LockKeys } from '../redis/lease-value.js';
import { Ballot, isDecided } from './ballot.js';
import { ask, type Poll } from './poll.js';
import { quorumError } from './quorum-error.js';
import { QuorumHealth } from './quorum-health.js';
import type { Candidacy, RedlockNode, Vote, VotingRules } from './redlock-node.js';
import { TokenClock } from './token-clock.js';

/** How often one attempt proposes a token. The second proposal is made of what the nodes said to the first. */
const MOST_ROUNDS = 4;

export interface RedlockSettings extends VotingRules {
  readonly prefix: string;
  /** How long nodes whose clocks differ are waited for, at most, until they take the same token. */
  readonly nodeTimeoutMs: number;
}

/**
 * Redlock (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/) with fencing tokens in the same round: the
 * client proposes the token, and a node grants it only if it is greater than the last one that it granted. Two majorities
 * share a node, so tokens grow, whatever the clocks of the clients say. See `VOTE` for what a node does.
 *
 * An owner may be asked for again: its leases get the newer token, once nobody can have seen the older one.
 */
export class RedlockLeaseStore implements LeaseStore {
  readonly name = 'redlock';
  readonly guarantee = 'best-effort';
  readonly #health: QuorumHealth;
  readonly #keys: LockKeys;
  readonly #sinceKey: string;
  readonly #tokens = new TokenClock();
  readonly #background = new Set<Promise<unknown>>();
  #prepared: Promise<unknown> | undefined;

  constructor(
    private readonly nodes: readonly RedlockNode[],
    private readonly settings: RedlockSettings,
  ) {
    this.#health = new QuorumHealth(nodes);
    this.#keys = new LockKeys(settings.prefix);
    this.#sinceKey = `${settings.prefix}:since`;
  }

  /** @throws LockBackendError at once when a majority of the nodes fails */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    this.#prepared ??= Promise.all(this.nodes.map((node) => node.prepare()));
    await this.#prepared;
    const leaseKey = this.#keys.lease(key);
    const candidacy: Candidacy = {
      keys: [leaseKey, `${leaseKey}:f`, this.#sinceKey],
      owner,
      ttlMs: Math.ceil(ttlMs),
      metadata: packMetadata(metadata),
    };
    const askedAt = systemClock.now();
    const ballot = await this.#vote(candidacy);
    if (ballot.won) return { acquired: true, fencingToken: BigInt(ballot.token) };
    const tookMs = systemClock.now() - askedAt;
    await this.#takeBack(candidacy, ballot.poll);
    if (!ballot.failed) return ballot.refusal(tookMs);
    throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: ballot.failure() });
  }

  /**
   * `true` when a quorum has renewed; `false` when none can, however often it is asked, since a node that says no has lost the
   * lease for good. What lies between is no answer.
   * @throws AggregateError that names every node
   */
  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const outcome = await ask(
      this.nodes,
      (node) => node.renew(leaseKey, owner, ttlMs),
      (poll) => isRenewed(poll) || isLost(poll) || isOpen(poll),
    );
    if (isRenewed(outcome)) return true;
    if (isLost(outcome)) return false;
    throw quorumError(outcome);
  }

  /**
   * Asks every node, and waits for all but those known to be down; those get it when they are back.
   * @throws AggregateError when no quorum has answered: another owner may be kept out until the lease ends
   */
  async release(key: string, owner: string): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const poll = await ask(
      this.nodes,
      (node) => node.release(leaseKey, owner),
      () => false,
    );
    if (poll.answers.size < poll.quorum) throw quorumError(poll);
    return poll.count((released) => released) > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.#background);
    await Promise.all(this.nodes.map((node) => node.close()));
  }

  health(): BackendHealth {
    return this.#health.current;
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    return this.#health.onChange(listener);
  }

  /** Round after round with the token that the nodes would take, as long as it is they who refuse and not another owner. */
  async #vote(candidacy: Candidacy): Promise<Ballot> {
    const { maxSkewMs, nodeTimeoutMs } = this.settings;
    let token = this.#tokens.now();
    for (let round = 1; ; round += 1) {
      const proposal = token;
      const poll = await ask(this.nodes, (node) => node.vote(candidacy, proposal), isDecided);
      const ballot = new Ballot(poll, proposal, maxSkewMs * 1_000);
      if (ballot.won || round === MOST_ROUNDS) return ballot;
      const now = ballot.now(this.#tokens.now());
      const better = ballot.betterToken(now);
      if (!better || better.inMs > nodeTimeoutMs) return ballot;
      this.#tokens.set(now);
      ({ token } = better);
      if (better.inMs > 0) await pause(systemClock, better.inMs);
    }
  }

  /** Frees what the candidate may have got, also on nodes whose vote is not known; waits only for those that have voted. */
  async #takeBack({ keys: [leaseKey], owner }: Candidacy, poll: Poll<RedlockNode, Vote>): Promise<void> {
    const takeBackFrom = async (node: RedlockNode): Promise<void> => {
      await poll.heardOf(node);
      if (poll.answers.get(node)?.kind !== 'held') await node.release(leaseKey, owner);
    };
    const takenBack = poll.nodes
      .map((node) => [poll.answers.has(node), this.#inBackground(takeBackFrom(node))] as const)
      .filter(([voted]) => voted);
    await Promise.all(takenBack.map(([, over]) => over));
  }

  /** Never rejects: a node keeps in mind what it still owes. */
  #inBackground(release: Promise<unknown>): Promise<void> {
    const forget = (): void => void this.#background.delete(over);
    const over: Promise<void> = release.then(forget, forget);
    this.#background.add(over);
    return over;
  }
}

function isRenewed(poll: Poll<RedlockNode, boolean>): boolean {
  return poll.count((ours) => ours) >= poll.quorum;
}

function isLost(poll: Poll<RedlockNode, boolean>): boolean {
  return poll.count((ours) => !ours) > poll.spare;
}

/** Whatever else is said will neither renew the lease nor end it. */
function isOpen(poll: Poll<RedlockNode, boolean>): boolean {
  const canBeRenewed = poll.count((ours) => ours) + poll.waiting >= poll.quorum;
  const canBeLost = poll.count((ours) => !ours) + poll.waiting > poll.spare;
  return !canBeRenewed && !canBeLost;
}
