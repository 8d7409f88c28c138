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
import { leaseKeyOf } from '../redis/scripts/lease-value.js';
import { VoteTally, isDecided } from './vote-tally.js';
import { ask, type QuorumCall } from './quorum-call.js';
import { quorumError } from './error.js';
import { QuorumHealth } from './quorum-health.js';
import type { Candidacy, RedlockNode, Vote, VotingRules } from './redlock-node.js';
import { TokenClock } from './token-clock.js';

/** How often one attempt proposes a token. Mostly the first is taken; the next follows from the nodes' answers. */
const MOST_ROUNDS = 6;

export interface RedlockSettings extends VotingRules {
  readonly prefix: string;
  /** How long to wait at most until nodes whose clocks differ take the same token. */
  readonly requestTimeoutMs: number;
}

/**
 * Redlock (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/) with fencing tokens in the same round: the
 * client proposes the token, and a node grants it only if it is greater than the last one that it granted. Two majorities
 * share a node, so tokens grow, whatever the clocks of the clients say. See `VOTE` for what a node does.
 *
 * Asked again for the same owner, it raises the owner's leases to a newer token and answers with that one: the older token
 * was for the same acquisition. Each attempt has a number, which is written into the lease: an earlier attempt never takes back
 * the lease of a later one, whenever it arrives.
 */
export class RedlockLeaseStore implements LeaseStore {
  readonly name = 'redlock';
  readonly guarantee = 'best-effort';
  readonly #health: QuorumHealth;
  readonly #sinceKey: string;
  readonly #tokens = new TokenClock();
  readonly #background = new Set<Promise<unknown>>();
  #attempts = 0;
  #greeting: Promise<QuorumCall<RedlockNode, void>> | undefined;

  constructor(
    /** All clients should have them in the same order: the first decides split votes. */
    private readonly nodes: readonly RedlockNode[],
    private readonly settings: RedlockSettings,
  ) {
    this.#health = new QuorumHealth(nodes);
    this.#sinceKey = `${settings.prefix}:since`;
  }

  /** Connects. @throws AggregateError when no quorum can be reached */
  async start(): Promise<void> {
    this.#greeting ??= this.#greet();
    const call = await this.#greeting;
    if (call.answers.size < call.quorum) throw quorumError(call);
  }

  /**
   * @throws LockBackendError when a majority of the nodes fails: no use in asking again
   * @throws AggregateError when they do not take the same token
   */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    this.#greeting ??= this.#greet();
    await this.#greeting;
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    this.#attempts += 1;
    const candidacy: Candidacy = {
      keys: [leaseKey, `${leaseKey}:f`, this.#sinceKey],
      owner,
      attempt: this.#attempts,
      ttlMs: Math.ceil(ttlMs),
      metadata: packMetadata(metadata),
    };
    const tally = await this.#vote(candidacy);
    if (tally.won) return { acquired: true, fencingToken: BigInt(tally.token) };
    await this.#takeBack(candidacy, tally.call);
    if (tally.failed) {
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: tally.failure() });
    }
    if (tally.stuck) throw tally.failure();
    return tally.refusal();
  }

  /**
   * `true` when a quorum has renewed; `false` when none can, however often it is asked, since a node that says no has lost the
   * lease for good. What lies between is no answer.
   * @throws AggregateError that names every node
   */
  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const outcome = await ask(
      this.nodes,
      (node) => node.renew(leaseKey, owner, ttlMs),
      (call) => isRenewed(call) || isLost(call) || isOpen(call),
    );
    if (isRenewed(outcome)) return true;
    if (isLost(outcome)) return false;
    throw quorumError(outcome);
  }

  /** As a quorum has it. @throws AggregateError that names every node, when none has it either way */
  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const call = await ask(
      this.nodes,
      (node) => node.isHeldBy(leaseKey, owner),
      (soFar) => isRenewed(soFar) || isLost(soFar),
    );
    if (isRenewed(call)) return true;
    if (isLost(call)) return false;
    throw quorumError(call);
  }

  /**
   * Asks every node, and waits for all but those known to be down; those get it when they are back.
   * @throws AggregateError when no quorum has answered: another owner may be kept out until the lease ends
   */
  async release(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const call = await ask(
      this.nodes,
      (node) => node.release(leaseKey, owner),
      () => false,
    );
    if (call.answers.size < call.quorum) throw quorumError(call);
    return call.count((released) => released) > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.#background);
    await Promise.all(this.nodes.map((node) => node.close()));
  }

  get health(): HealthSource {
    return this.#health;
  }

  /** Once, before the first vote: until a quorum is connected, or cannot be. */
  async #greet(): Promise<QuorumCall<RedlockNode, void>> {
    await Promise.all(this.nodes.map((node) => node.prepare()));
    return ask(
      this.nodes,
      (node) => node.greet(),
      ({ answers, failures, quorum, spare }) => answers.size >= quorum || failures.size > spare,
    );
  }

  /** Round after round, as long as another one may bring a quorum. */
  async #vote(candidacy: Candidacy): Promise<VoteTally> {
    let token = this.#tokens.now();
    for (let round = 1; ; round += 1) {
      const proposal = token;
      const askedAt = systemClock.now();
      const call = await ask(this.nodes, (node) => node.vote(candidacy, proposal), isDecided);
      const tally = new VoteTally(call, proposal, systemClock.now() - askedAt, this.settings);
      const now = tally.now(this.#tokens.now());
      const next = tally.won || round === MOST_ROUNDS ? undefined : tally.next(now);
      if (!next) return tally;
      this.#tokens.set(now);
      if (next.inMs > 0) await pause(systemClock, next.inMs);
      ({ token } = next);
    }
  }

  /** Frees what this attempt may have got, also on nodes whose vote is not known; waits only for those that have voted. */
  async #takeBack({ keys: [leaseKey], owner, attempt }: Candidacy, call: QuorumCall<RedlockNode, Vote>): Promise<void> {
    const takeBackFrom = async (node: RedlockNode): Promise<void> => {
      await call.heardOf(node);
      if (call.answers.get(node)?.kind !== 'held') await node.takeBack(owner, { leaseKey, attempt });
    };
    const takenBack = call.nodes
      .map((node) => [call.answers.has(node), this.#inBackground(takeBackFrom(node))] as const)
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

function isRenewed(call: QuorumCall<RedlockNode, boolean>): boolean {
  return call.count((ours) => ours) >= call.quorum;
}

function isLost(call: QuorumCall<RedlockNode, boolean>): boolean {
  return call.count((ours) => !ours) > call.spare;
}

/** The answers that are still to come will neither renew the lease nor end it. */
function isOpen(call: QuorumCall<RedlockNode, boolean>): boolean {
  const canBeRenewed = call.count((ours) => ours) + call.waiting >= call.quorum;
  const canBeLost = call.count((ours) => !ours) + call.waiting > call.spare;
  return !canBeRenewed && !canBeLost;
}
