import { pause, systemClock } from '../../core/index.js';
import type { QuorumCall } from './quorum-call.js';
import type { JoinCandidacy, RedlockNode } from './redlock-node.js';
import { findSoonestToken, type TokenClock } from './token-clock.js';

/** Maximum number of proposals to one node. A refusal of the first proposal says which token the node grants. */
const MAX_PROPOSALS = 2;

/**
 * Adds a holder's lease on the nodes that do not have it: nodes that missed the vote, refused the token, or have lost
 * their data. Without a completion, a failure of one more node could end the lock.
 *
 * A completion begins when a quorum has renewed: until then another owner may be the holder. The proposed token must be
 * greater than all tokens that the node granted or may have forgotten. The node keeps the proposal only as its
 * fence, the last granted token. The lease gets the token of the acquisition. The grant counts neither for an
 * acquisition nor for the present renewal.
 */
export class LeaseCompletion {
  #isStopped = false;

  constructor(
    private readonly keys: JoinCandidacy['keys'],
    private readonly owner: string,
    private readonly ttlMs: number,
    private readonly tokenClock: TokenClock,
    /** Maximum pause for a node whose clock does not allow the proposal yet. */
    private readonly maxPauseMs: number,
  ) {}

  /** Stops sending proposals, so that nodes get the release of the owner after all proposals. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Adds the lease on the nodes whose answer to the renewal was no. Never rejects. */
  async run(renewal: QuorumCall<boolean>): Promise<void> {
    const nodesWithoutRenewal = renewal.nodes.filter((node) => renewal.answers.get(node) !== true && !node.isDown);
    let candidacyPromise: Promise<JoinCandidacy | undefined> | undefined;
    const completeOn = async (node: RedlockNode): Promise<void> => {
      await renewal.settlements.get(node);
      if (renewal.answers.get(node) !== false || this.#isStopped) return;
      const candidacy = await (candidacyPromise ??= this.#readCandidacy(renewal));
      if (candidacy) await this.#requestJoinOn(node, candidacy);
    };
    await Promise.allSettled(nodesWithoutRenewal.map(completeOn));
  }

  async #readCandidacy({ answers }: QuorumCall<boolean>): Promise<JoinCandidacy | undefined> {
    const [node] = [...answers].find(([, isRenewed]) => isRenewed) ?? [];
    const lease = await node?.readLeaseOf(this.owner, this.keys[0]);
    return lease && { ...lease, keys: this.keys, ttlMs: this.ttlMs };
  }

  async #requestJoinOn(node: RedlockNode, candidacy: JoinCandidacy): Promise<void> {
    let proposal = Math.max(this.tokenClock.nowUs(), candidacy.token);
    for (let proposalNumber = 1; proposalNumber <= MAX_PROPOSALS && !this.#isStopped; proposalNumber += 1) {
      const vote = await node.requestJoin(candidacy, proposal);
      if (vote.kind !== 'refused') return;
      const nextProposal = findSoonestToken([vote], 1, proposal);
      if (!nextProposal || nextProposal.delayMs > this.maxPauseMs) return;
      if (nextProposal.delayMs > 0) await pause(systemClock, nextProposal.delayMs, { background: true });
      proposal = nextProposal.token;
    }
  }
}

/** Completions under way, by owner. A release of the owner stops them. */
export class LeaseCompletions {
  readonly #completionsByOwner = new Map<string, Set<LeaseCompletion>>();

  add(owner: string, completion: LeaseCompletion): void {
    const completions = this.#completionsByOwner.get(owner) ?? new Set();
    this.#completionsByOwner.set(owner, completions.add(completion));
  }

  delete(owner: string, completion: LeaseCompletion): void {
    const completions = this.#completionsByOwner.get(owner);
    completions?.delete(completion);
    if (completions?.size === 0) this.#completionsByOwner.delete(owner);
  }

  stopAll(owner: string): void {
    for (const completion of this.#completionsByOwner.get(owner) ?? []) completion.stop();
    this.#completionsByOwner.delete(owner);
  }
}
