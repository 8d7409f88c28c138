import {
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  packMetadata,
  pause,
  systemClock,
} from '../../core/index.js';
import { leaseKeyOf } from '../redis/scripts/redis-values.js';
import { LeaseCompletion, LeaseCompletions } from './lease-completion.js';
import { isVoteDecided, VoteTally } from './vote-tally.js';
import type { NodeLease } from './node-lease.js';
import { QuorumCall } from './quorum-call.js';
import { QuorumHealth } from './quorum-health.js';
import type { RedlockSettings } from './options.js';
import type { Candidacy, RedlockNode, Vote } from './redlock-node.js';
import { TokenClock } from './token-clock.js';

/** Maximum number of rounds of one attempt. The answers to a round tell which token to propose in the next. */
const MAX_ROUNDS = 6;

/**
 * Redlock (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/) with fencing tokens in the same round.
 * The client proposes a token, and a node grants only tokens that are greater than its last granted one. Any two
 * majorities share a node. Tokens therefore grow, whatever the clocks of the clients say.
 *
 * A repeated attempt of the same owner gives its leases a newer token, and returns that token. Each lease stores the
 * number of its attempt: even a late command of an earlier attempt never takes back the lease of a later one.
 */
export class RedlockLeaseStore implements LeaseStore {
  readonly name = 'redlock';
  readonly guarantee = 'best-effort';
  readonly health: QuorumHealth;
  /** Name of the key that tells since when a node has its data. */
  readonly #dataSinceKey: string;
  readonly #tokenClock = new TokenClock();
  readonly #backgroundTasks = new Set<Promise<unknown>>();
  readonly #completions = new LeaseCompletions();
  #attemptCount = 0;
  #connectPromise: Promise<QuorumCall<void>> | undefined;

  constructor(
    /** All processes must have the nodes in the same order: the first node decides split votes. */
    private readonly nodes: readonly RedlockNode[],
    private readonly settings: RedlockSettings,
  ) {
    this.health = new QuorumHealth(nodes);
    this.#dataSinceKey = `${settings.prefix}:since`;
  }

  /**
   * @throws LockConfigurationError when two nodes are the same server
   * @throws AggregateError when no quorum can be reached
   */
  async start(): Promise<void> {
    const call = await (this.#connectPromise ??= this.#connect());
    await call.assertConfiguration(this.settings.requestTimeoutMs);
    if (!call.hasQuorum) throw call.createNoQuorumError();
  }

  /**
   * @throws LockBackendError when so many nodes have failed that no quorum is possible: the core does not retry
   * @throws AggregateError when the nodes do not grant the same token: the core retries
   */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    await (this.#connectPromise ??= this.#connect());
    this.#attemptCount += 1;
    const candidacy: Candidacy = {
      keys: this.#keysForVote(key),
      owner,
      attempt: this.#attemptCount,
      ttlMs: Math.ceil(ttlMs),
      metadata: packMetadata(metadata),
    };
    const tally = await this.#vote(candidacy);
    if (tally.isWon) return { acquired: true, fencingToken: BigInt(tally.token) };
    await this.#takeBack(candidacy, tally.call);
    if (tally.hasFailed) {
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: tally.createNoQuorumError() });
    }
    if (tally.lacksCommonToken) throw tally.createNoQuorumError();
    return tally.toRefusal();
  }

  /**
   * Resolves to `true` when a quorum has renewed; the other nodes then get the lease in the background. Resolves to
   * `false` when no quorum has the lease.
   * @throws AggregateError that names every node, when neither is certain
   */
  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const keys = this.#keysForVote(key);
    const { requestTimeoutMs } = this.settings;
    const completion = new LeaseCompletion(keys, owner, Math.ceil(ttlMs), this.#tokenClock, requestTimeoutMs);
    this.#completions.add(owner, completion);
    const removeCompletion = (): void => this.#completions.delete(owner, completion);
    try {
      const renewal = await this.#askUntilCertain((node) => node.renew(keys[0], owner, ttlMs));
      const isRenewed = isConfirmedByQuorum(renewal);
      if (isRenewed) void this.#trackInBackground(completion.run(renewal)).then(removeCompletion);
      else removeCompletion();
      return isRenewed;
    } catch (error) {
      removeCompletion();
      throw error;
    }
  }

  /** @throws AggregateError that names every node, when no quorum gives the same answer */
  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    return isConfirmedByQuorum(await this.#askUntilCertain((node) => node.isHeldBy(leaseKey, owner)));
  }

  /** @throws AggregateError that names every node, when no quorum answers */
  async look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const call = new QuorumCall<NodeLease>(this.nodes);
    const leasesOf = (owner: string) => [...call.answers.values()].filter((lease) => lease.owner === owner);
    const findLeaseOnNodes = (minNodes: number): NodeLease | undefined =>
      [...call.answers.values()].find(({ owner }) => owner !== '' && leasesOf(owner).length >= minNodes);
    // The call is decided when an owner has a quorum, or when the missing answers cannot give a quorum to any owner.
    await call.askAll(
      (node) => node.readLease(leaseKey),
      ({ hasQuorum, quorum, awaitedCount }) =>
        hasQuorum && (findLeaseOnNodes(quorum) !== undefined || findLeaseOnNodes(quorum - awaitedCount) === undefined),
    );
    if (!call.hasQuorum) throw call.createNoQuorumError();
    const lease = findLeaseOnNodes(call.quorum);
    if (!lease) return {};
    const { owner, token, holder } = lease;
    // The owner holds the key until too few leases are left for a quorum.
    const leftMs = leasesOf(owner)
      .map((nodeLease) => nodeLease.leftMs)
      .toSorted((a, b) => b - a)[call.quorum - 1];
    return { holder: { owner, fencingToken: token, ...(leftMs === undefined ? {} : { leftMs }), ...holder } };
  }

  /**
   * Waits until a quorum has released the key: the next owner needs a quorum. Also waits for a node with too many
   * pending releases. Other nodes get the release in the background, or when they are up again.
   * @throws AggregateError when no quorum has answered: other owners may have to wait until the lease ends
   */
  release(key: string, owner: string): Promise<boolean> {
    return this.#releaseBy(owner, key, (node, leaseKey) => node.release(leaseKey, owner));
  }

  /** Releases the lease of an owner in any process. A renewal that is under way there does not restore the lease. */
  evict(key: string, owner: string): Promise<boolean> {
    return this.#releaseBy(owner, key, (node, leaseKey) => node.evict(leaseKey, owner));
  }

  async close(): Promise<void> {
    await Promise.all(this.#backgroundTasks);
    await Promise.all(this.nodes.map((node) => node.connection.close()));
  }

  async #connect(): Promise<QuorumCall<void>> {
    await Promise.all(this.nodes.map((node) => node.connection.startConnecting()));
    const call = new QuorumCall<void>(this.nodes);
    const hasQuorumOrFailed = (): boolean => call.hasQuorumOrFailed;
    return call.askAll((node) => node.connect(), hasQuorumOrFailed);
  }

  /** @throws AggregateError that names every node, when neither a yes nor a no by a quorum is certain */
  async #askUntilCertain(ask: (node: RedlockNode) => Promise<boolean>): Promise<QuorumCall<boolean>> {
    const call = new QuorumCall<boolean>(this.nodes);
    const countYes = (): number => call.countAnswers((isYes) => isYes);
    const countNo = (): number => call.answers.size - countYes();
    // The call is also decided when the missing answers cannot make either result certain.
    await call.askAll(
      ask,
      ({ awaitedCount, quorum, maxFailures }) =>
        countYes() >= quorum ||
        countNo() > maxFailures ||
        (countYes() + awaitedCount < quorum && countNo() + awaitedCount <= maxFailures),
    );
    if (countYes() < call.quorum && countNo() <= call.maxFailures) throw call.createNoQuorumError();
    return call;
  }

  async #releaseBy(
    owner: string,
    key: string,
    releaseOn: (node: RedlockNode, leaseKey: string) => Promise<boolean>,
  ): Promise<boolean> {
    this.#completions.stopAll(owner);
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const call = new QuorumCall<boolean>(this.nodes);
    await call.askAll(
      (node) => (node.isDown ? releaseOn(node, leaseKey) : this.#trackInBackground(releaseOn(node, leaseKey))),
      ({ hasQuorumOrFailed, nodes }) =>
        hasQuorumOrFailed && !nodes.some((node) => node.hasTooManyReleases && call.isAwaiting(node)),
    );
    if (!call.hasQuorum) throw call.createNoQuorumError();
    return call.countAnswers((wasHeld) => wasHeld) > 0;
  }

  async #vote(candidacy: Candidacy): Promise<VoteTally> {
    let token = this.#tokenClock.nowUs();
    for (let round = 1; ; round += 1) {
      const proposal = token;
      const startedAt = systemClock.now();
      const call = new QuorumCall<Vote>(this.nodes);
      await call.askAll((node) => node.requestVote(candidacy, proposal), isVoteDecided);
      const tally = new VoteTally(call, proposal, systemClock.now() - startedAt, this.settings);
      const nowUs = tally.medianClockUs(this.#tokenClock.nowUs());
      const nextProposal = tally.isWon || round === MAX_ROUNDS ? undefined : tally.nextProposal(nowUs);
      if (!nextProposal) return tally;
      this.#tokenClock.adjustTo(nowUs);
      if (nextProposal.delayMs > 0) await pause(systemClock, nextProposal.delayMs);
      ({ token } = nextProposal);
    }
  }

  /**
   * Deletes the leases of a lost vote, also on nodes that have not answered yet. Waits for the nodes that have voted, or
   * for a quorum: the next owner needs no more nodes.
   */
  async #takeBack({ keys: [leaseKey], owner, attempt }: Candidacy, vote: QuorumCall<Vote>): Promise<void> {
    const voters = [...vote.answers.keys()];
    const takeBackFrom = async (node: RedlockNode): Promise<void> => {
      await vote.settlements.get(node);
      if (vote.answers.get(node)?.kind !== 'held') await node.takeBack(owner, { leaseKey, attempt });
    };
    const call = new QuorumCall<void>(this.nodes);
    await call.askAll(
      (node) => this.#trackInBackground(takeBackFrom(node)),
      ({ hasQuorum }) => hasQuorum || !voters.some((node) => call.isAwaiting(node)),
    );
  }

  /** Makes `close` wait for the task. Returns the task. */
  #trackInBackground<T>(task: Promise<T>): Promise<T> {
    const untrack = (): void => void this.#backgroundTasks.delete(trackedTask);
    const trackedTask: Promise<void> = task.then(untrack, untrack);
    this.#backgroundTasks.add(trackedTask);
    return task;
  }

  #keysForVote(key: string): Candidacy['keys'] {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    return [leaseKey, `${leaseKey}:f`, this.#dataSinceKey];
  }
}

function isConfirmedByQuorum(call: QuorumCall<boolean>): boolean {
  return call.countAnswers((isYes) => isYes) >= call.quorum;
}
