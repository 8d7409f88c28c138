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
import { VoteTally, isDecided } from './vote-tally.js';
import type { NodeLease } from './node-lease.js';
import { QuorumCall } from './quorum-call.js';
import { QuorumHealth } from './quorum-health.js';
import type { RedlockSettings } from './options.js';
import type { Candidacy, RedlockNode, Vote } from './redlock-node.js';
import { TokenClock } from './token-clock.js';

/** How often one attempt proposes a token. Mostly the first is taken; the next follows from the nodes' answers. */
const MOST_ROUNDS = 6;

/**
 * Redlock (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/) with fencing tokens in the same round:
 * the client proposes the token, and a node grants it only if it is greater than the last one that it granted. Two
 * majorities share a node, so tokens grow, whatever the clocks of the clients say. See `VOTE` for what a node does.
 *
 * Asked again for the same owner, it raises the owner's leases to a newer token and answers with that one: the older
 * token was for the same acquisition. Each attempt has a number, which is written into the lease: an earlier attempt
 * never takes back the lease of a later one, whenever it arrives.
 */
export class RedlockLeaseStore implements LeaseStore {
  readonly name = 'redlock';
  readonly guarantee = 'best-effort';
  readonly health: QuorumHealth;
  readonly #sinceKey: string;
  readonly #tokens = new TokenClock();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #completions = new LeaseCompletions();
  #attempts = 0;
  #greeting: Promise<QuorumCall<void>> | undefined;

  constructor(
    /** All clients should have them in the same order: the first decides split votes. */
    private readonly nodes: readonly RedlockNode[],
    private readonly settings: RedlockSettings,
  ) {
    this.health = new QuorumHealth(nodes);
    this.#sinceKey = `${settings.prefix}:since`;
  }

  /** Connects. @throws AggregateError when no quorum can be reached */
  async start(): Promise<void> {
    const call = await (this.#greeting ??= this.#greet());
    if (!call.hasQuorum) throw call.error();
  }

  /**
   * @throws LockBackendError when a majority of the nodes fails: no use in asking again
   * @throws AggregateError when they do not take the same token
   */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    await (this.#greeting ??= this.#greet());
    this.#attempts += 1;
    const candidacy: Candidacy = {
      keys: this.#voteKeys(key),
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
   * `true` when a quorum has renewed; `false` when none can, however often it is asked, since no node gets the lease
   * again without a quorum. What lies between is no answer. After a `true`, nodes without the lease get it in the
   * background.
   * @throws AggregateError that names every node
   */
  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const keys = this.#voteKeys(key);
    const { requestTimeoutMs } = this.settings;
    const completion = new LeaseCompletion(keys, owner, Math.ceil(ttlMs), this.#tokens, requestTimeoutMs);
    this.#completions.add(owner, completion);
    const end = (): void => this.#completions.delete(owner, completion);
    try {
      const renewal = await this.#poll((node) => node.renew(keys[0], owner, ttlMs));
      const isRenewed = isConfirmed(renewal);
      if (isRenewed) void this.#inBackground(completion.run(renewal)).then(end);
      else end();
      return isRenewed;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** As a quorum has it. @throws AggregateError that names every node, when none has it either way */
  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    return isConfirmed(await this.#poll((node) => node.isHeldBy(leaseKey, owner)));
  }

  /** The owner whose leases a quorum has. @throws AggregateError that names every node, when no quorum answers */
  async look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const poll = new QuorumCall<NodeLease>(this.nodes);
    const leasesOf = (owner: string) => [...poll.answers.values()].filter((lease) => lease.owner === owner);
    const leaseOnAtLeast = (count: number): NodeLease | undefined =>
      [...poll.answers.values()].find(({ owner }) => owner !== '' && leasesOf(owner).length >= count);
    const winner = (): NodeLease | undefined => leaseOnAtLeast(poll.quorum);
    // Over when an owner has a quorum, and when the answers that are still to come give it to none.
    await poll.put(
      (node) => node.look(leaseKey),
      ({ hasQuorum, quorum, waiting }) =>
        hasQuorum && (winner() !== undefined || leaseOnAtLeast(quorum - waiting) === undefined),
    );
    if (!poll.hasQuorum) throw poll.error();
    const won = winner();
    if (!won) return {};
    // It has the key until too few nodes say so.
    const leftMs = leasesOf(won.owner)
      .map((lease) => lease.leftMs)
      .toSorted((a, b) => b - a)[poll.quorum - 1];
    const { owner, token, holder } = won;
    return { holder: { owner, fencingToken: token, ...(leftMs === undefined ? {} : { leftMs }), ...holder } };
  }

  /**
   * Asks every node, and waits for a quorum, which the next owner needs. The others get the release in the background,
   * or when they are back.
   * @throws AggregateError when no quorum has answered: another owner may be kept out until the lease ends
   */
  release(key: string, owner: string): Promise<boolean> {
    return this.#free(owner, key, (node, leaseKey) => node.release(leaseKey, owner));
  }

  /** Like `release`; no renewal that is under way in the owner's process gives the nodes the lease again. */
  evict(key: string, owner: string): Promise<boolean> {
    return this.#free(owner, key, (node, leaseKey) => node.evict(leaseKey, owner));
  }

  async close(): Promise<void> {
    await Promise.all(this.#underWay);
    await Promise.all(this.nodes.map((node) => node.connection.close()));
  }

  /** Once, before the first vote: until a quorum is connected, or cannot be. */
  async #greet(): Promise<QuorumCall<void>> {
    await Promise.all(this.nodes.map((node) => node.connection.startConnecting()));
    const greeting = new QuorumCall<void>(this.nodes);
    return greeting.put(
      (node) => node.greet(),
      ({ isSettled }) => isSettled,
    );
  }

  /** @throws AggregateError that names every node, when no quorum says yes and none can say no */
  async #poll(question: (node: RedlockNode) => Promise<boolean>): Promise<QuorumCall<boolean>> {
    const poll = new QuorumCall<boolean>(this.nodes);
    const yes = (): number => poll.count((ours) => ours);
    const no = (): number => poll.answers.size - yes();
    // Over when it is decided, and when the answers that are still to come will not decide it.
    await poll.put(
      question,
      ({ waiting, quorum, spare }) =>
        yes() >= quorum || no() > spare || (yes() + waiting < quorum && no() + waiting <= spare),
    );
    if (yes() < poll.quorum && no() <= poll.spare) throw poll.error();
    return poll;
  }

  async #free(
    owner: string,
    key: string,
    freeOn: (node: RedlockNode, leaseKey: string) => Promise<boolean>,
  ): Promise<boolean> {
    this.#completions.stop(owner);
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const freed = new QuorumCall<boolean>(this.nodes);
    await freed.put(
      (node) => (node.down ? freeOn(node, leaseKey) : this.#inBackground(freeOn(node, leaseKey))),
      (call) => call.isSettled && !call.nodes.some((node) => node.isBehind && call.awaits(node)),
    );
    if (!freed.hasQuorum) throw freed.error();
    return freed.count((wasOwners) => wasOwners) > 0;
  }

  /** Round after round, as long as another one may bring a quorum. */
  async #vote(candidacy: Candidacy): Promise<VoteTally> {
    let token = this.#tokens.now();
    for (let round = 1; ; round += 1) {
      const proposal = token;
      const askedAt = systemClock.now();
      const call = await new QuorumCall<Vote>(this.nodes).put((node) => node.vote(candidacy, proposal), isDecided);
      const tally = new VoteTally(call, proposal, systemClock.now() - askedAt, this.settings);
      const now = tally.now(this.#tokens.now());
      const next = tally.won || round === MOST_ROUNDS ? undefined : tally.next(now);
      if (!next) return tally;
      this.#tokens.set(now);
      if (next.inMs > 0) await pause(systemClock, next.inMs);
      ({ token } = next);
    }
  }

  /**
   * Frees what this attempt may have got, also where its vote is not known. Waits for the nodes that have voted, and no
   * longer than for a quorum, which the next owner needs.
   */
  async #takeBack({ keys: [leaseKey], owner, attempt }: Candidacy, call: QuorumCall<Vote>): Promise<void> {
    const voters = [...call.answers.keys()];
    const takeBackFrom = async (node: RedlockNode): Promise<void> => {
      await call.heard.get(node);
      if (call.answers.get(node)?.kind !== 'held') await node.takeBack(owner, { leaseKey, attempt });
    };
    const takenBack = new QuorumCall<void>(this.nodes);
    await takenBack.put(
      (node) => this.#inBackground(takeBackFrom(node)),
      ({ hasQuorum }) => hasQuorum || !voters.some((node) => takenBack.awaits(node)),
    );
  }

  /** `close` waits for it. A node keeps in mind which releases it still owes. */
  #inBackground<T>(task: Promise<T>): Promise<T> {
    const forget = (): void => void this.#underWay.delete(over);
    const over: Promise<void> = task.then(forget, forget);
    this.#underWay.add(over);
    return task;
  }

  #voteKeys(key: string): Candidacy['keys'] {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    return [leaseKey, `${leaseKey}:f`, this.#sinceKey];
  }
}

function isConfirmed(poll: QuorumCall<boolean>): boolean {
  return poll.count((ours) => ours) >= poll.quorum;
}
