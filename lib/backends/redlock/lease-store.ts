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
import { VoteTally, isDecided } from './vote-tally.js';
import { QuorumCall } from './quorum-call.js';
import { QuorumHealth } from './quorum-health.js';
import type { RedlockSettings } from './options.js';
import type { Candidacy, NodeLease, RedlockNode, Vote } from './redlock-node.js';
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
    if (call.answers.size < call.quorum) throw call.error();
  }

  /**
   * @throws LockBackendError when a majority of the nodes fails: no use in asking again
   * @throws AggregateError when they do not take the same token
   */
  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    await (this.#greeting ??= this.#greet());
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
   * `true` when a quorum has renewed; `false` when none can, however often it is asked, since a node that says no has
   * lost the lease for good. What lies between is no answer.
   * @throws AggregateError that names every node
   */
  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#poll(key, (node, leaseKey) => node.renew(leaseKey, owner, ttlMs));
  }

  /** As a quorum has it. @throws AggregateError that names every node, when none has it either way */
  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.#poll(key, (node, leaseKey) => node.isHeldBy(leaseKey, owner));
  }

  /** The owner whose leases a quorum has. @throws AggregateError that names every node, when no quorum answers */
  async look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const poll = new QuorumCall<NodeLease>(this.nodes);
    const leasesOf = (owner: string) => [...poll.answers.values()].filter((lease) => lease.owner === owner);
    const winner = (): NodeLease | undefined =>
      [...poll.answers.values()].find(({ owner }) => owner !== '' && leasesOf(owner).length >= poll.quorum);
    await poll.put(
      (node) => node.look(leaseKey),
      () => winner() !== undefined,
    );
    if (poll.answers.size < poll.quorum) throw poll.error();
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
   * Asks every node, and waits for all but those known to be down; those get it when they are back.
   * @throws AggregateError when no quorum has answered: another owner may be kept out until the lease ends
   */
  async release(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const released = new QuorumCall<boolean>(this.nodes);
    await released.put(
      (node) => node.release(leaseKey, owner),
      () => false,
    );
    if (released.answers.size < released.quorum) throw released.error();
    return released.count((wasOwners) => wasOwners) > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.#underWay);
    await Promise.all(this.nodes.map((node) => node.connection.close()));
  }

  /** Once, before the first vote: until a quorum is connected, or cannot be. */
  async #greet(): Promise<QuorumCall<void>> {
    await Promise.all(this.nodes.map((node) => node.connection.prepare()));
    const greeting = new QuorumCall<void>(this.nodes);
    const isOver = (): boolean => greeting.answers.size >= greeting.quorum || greeting.failures.size > greeting.spare;
    return greeting.put((node) => node.greet(), isOver);
  }

  async #poll(key: string, question: (node: RedlockNode, leaseKey: string) => Promise<boolean>): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.settings.prefix, key);
    const poll = new QuorumCall<boolean>(this.nodes);
    const yes = (): number => poll.count((ours) => ours);
    const no = (): number => poll.answers.size - yes();
    // Over when it is decided, and when the answers that are still to come will not decide it.
    await poll.put(
      (node) => question(node, leaseKey),
      ({ waiting, quorum, spare }) =>
        yes() >= quorum || no() > spare || (yes() + waiting < quorum && no() + waiting <= spare),
    );
    if (yes() >= poll.quorum) return true;
    if (no() > poll.spare) return false;
    throw poll.error();
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

  /** Frees what this attempt may have got, also where its vote is not known; waits only for nodes that have voted. */
  async #takeBack({ keys: [leaseKey], owner, attempt }: Candidacy, call: QuorumCall<Vote>): Promise<void> {
    const takeBackFrom = async (node: RedlockNode): Promise<void> => {
      await call.heard.get(node);
      if (call.answers.get(node)?.kind !== 'held') await node.takeBack(owner, { leaseKey, attempt });
    };
    const takenBack = call.nodes
      .map((node) => [call.answers.has(node), this.#unawaited(takeBackFrom(node))] as const)
      .filter(([voted]) => voted);
    await Promise.all(takenBack.map(([, over]) => over));
  }

  /** Never rejects: a node keeps in mind what it still owes. */
  #unawaited(release: Promise<unknown>): Promise<void> {
    const forget = (): void => void this.#underWay.delete(over);
    const over: Promise<void> = release.then(forget, forget);
    this.#underWay.add(over);
    return over;
  }
}
