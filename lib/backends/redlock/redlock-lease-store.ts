import {
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockBackendError,
  packMetadata,
  pause,
  systemClock,
} from '../../core/index.js';
import { LockKeys } from '../redis/lease-value.js';
import { Ballot, isDecided } from './ballot.js';
import { ask, type Poll } from './poll.js';
import { quorumError } from './quorum-error.js';
import { QuorumHealth } from './quorum-health.js';
import type { Candidacy, RedlockNode, Vote, VotingRules } from './redlock-node.js';
import { TokenClock } from './token-clock.js';

/** How often one attempt proposes a token. Mostly the first does; the next is made of what the nodes said to it. */
const MOST_ROUNDS = 6;

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
 * Asked again for the same owner, it raises the owner's leases to a newer token and answers with that one: the older, if a
 * quorum had it, was for nobody but this same acquisition. Each attempt has a number, which is written into the lease: what an
 * earlier attempt takes back, at whatever time, is never what a later one has won.
 */
export class RedlockLeaseStore implements LeaseStore {
  readonly name = 'redlock';
  readonly guarantee = 'best-effort';
  readonly #health: QuorumHealth;
  readonly #keys: LockKeys;
  readonly #sinceKey: string;
  readonly #tokens = new TokenClock();
  readonly #background = new Set<Promise<unknown>>();
  #attempts = 0;
  #greeting: Promise<Poll<RedlockNode, void>> | undefined;

  constructor(
    /** All clients should have them in the same order: the first decides split votes. */
    private readonly nodes: readonly RedlockNode[],
    private readonly settings: RedlockSettings,
  ) {
    this.#health = new QuorumHealth(nodes);
    this.#keys = new LockKeys(settings.prefix);
    this.#sinceKey = `${settings.prefix}:since`;
  }

  /** Connects. @throws AggregateError when no quorum can be reached */
  async start(): Promise<void> {
    this.#greeting ??= this.#greet();
    const poll = await this.#greeting;
    if (poll.answers.size < poll.quorum) throw quorumError(poll);
  }

  /**
   * @throws LockBackendError when a majority of the nodes fails: no use in asking again
   * @throws AggregateError when they do not take the same token
   */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    this.#greeting ??= this.#greet();
    await this.#greeting;
    const leaseKey = this.#keys.lease(key);
    this.#attempts += 1;
    const candidacy: Candidacy = {
      keys: [leaseKey, `${leaseKey}:f`, this.#sinceKey],
      owner,
      attempt: this.#attempts,
      ttlMs: Math.ceil(ttlMs),
      metadata: packMetadata(metadata),
    };
    const ballot = await this.#vote(candidacy);
    if (ballot.won) return { acquired: true, fencingToken: BigInt(ballot.token) };
    await this.#takeBack(candidacy, ballot.poll);
    if (ballot.failed) {
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: ballot.failure() });
    }
    if (ballot.stuck) throw ballot.failure();
    return ballot.refusal();
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

  /** As a quorum has it. @throws AggregateError that names every node, when none has it either way */
  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const poll = await ask(
      this.nodes,
      (node) => node.isHeldBy(leaseKey, owner),
      (soFar) => isRenewed(soFar) || isLost(soFar),
    );
    if (isRenewed(poll)) return true;
    if (isLost(poll)) return false;
    throw quorumError(poll);
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

  get health(): HealthSource {
    return this.#health;
  }

  /** Once, before the first vote: until a quorum is connected, or cannot be. */
  async #greet(): Promise<Poll<RedlockNode, void>> {
    await Promise.all(this.nodes.map((node) => node.prepare()));
    return ask(
      this.nodes,
      (node) => node.greet(),
      ({ answers, failures, quorum, spare }) => answers.size >= quorum || failures.size > spare,
    );
  }

  /** Round after round, as long as another one may bring a quorum. */
  async #vote(candidacy: Candidacy): Promise<Ballot> {
    let token = this.#tokens.now();
    for (let round = 1; ; round += 1) {
      const proposal = token;
      const askedAt = systemClock.now();
      const poll = await ask(this.nodes, (node) => node.vote(candidacy, proposal), isDecided);
      const ballot = new Ballot(poll, proposal, systemClock.now() - askedAt, this.settings);
      const now = ballot.now(this.#tokens.now());
      const next = ballot.won || round === MOST_ROUNDS ? undefined : ballot.next(now);
      if (!next) return ballot;
      this.#tokens.set(now);
      if (next.inMs > 0) await pause(systemClock, next.inMs);
      ({ token } = next);
    }
  }

  /** Frees what this attempt may have got, also on nodes whose vote is not known; waits only for those that have voted. */
  async #takeBack({ keys: [leaseKey], owner, attempt }: Candidacy, poll: Poll<RedlockNode, Vote>): Promise<void> {
    const takeBackFrom = async (node: RedlockNode): Promise<void> => {
      await poll.heardOf(node);
      if (poll.answers.get(node)?.kind !== 'held') await node.takeBack(owner, { leaseKey, attempt });
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
