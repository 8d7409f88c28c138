import { pause, systemClock } from '../../core/index.js';
import type { QuorumCall } from './quorum-call.js';
import type { JoinCandidacy, RedlockNode } from './redlock-node.js';
import { findSoonestToken, type TokenClock } from './token-clock.js';

/** Maximum number of proposals to one node. Its refusal of the first one says which token it grants. */
const MAX_PROPOSALS = 2;

/**
 * Adds a holder's lease on the nodes that do not have it: nodes that missed the vote, refused its token, or have lost their
 * data. Without a completion one more failure would end the lock.
 *
 * A completion is created with each renewal, and begins when a quorum has renewed: until then another owner may be the
 * holder. As in a vote, a node never replaces the lease of another owner. The proposed token must be greater than all
 * tokens that the node granted or may have forgotten. It only raises the node's fence: the lease has the token of the
 * acquisition. The grant counts neither for an acquisition nor for the present renewal.
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

  /** Stops sending proposals, because the owner releases the key. Nodes get the release after all earlier proposals. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Resolves when each node has the lease, or does not grant it. Never rejects. */
  async run(renewal: QuorumCall<boolean>): Promise<void> {
    const candidates = renewal.nodes.filter((node) => renewal.answers.get(node) !== true && !node.isDown);
    let readingCandidacy: Promise<JoinCandidacy | undefined> | undefined;
    const completeOn = async (node: RedlockNode): Promise<void> => {
      await renewal.settlements.get(node);
      if (renewal.answers.get(node) !== false || this.#isStopped) return;
      const candidacy = await (readingCandidacy ??= this.#readCandidacy(renewal));
      if (candidacy) await this.#joinOn(node, candidacy);
    };
    await Promise.allSettled(candidates.map(completeOn));
  }

  /** Reads the lease from a node that has renewed it. */
  async #readCandidacy({ answers }: QuorumCall<boolean>): Promise<JoinCandidacy | undefined> {
    const [node] = [...answers].find(([, isRenewed]) => isRenewed) ?? [];
    const lease = await node?.readLeaseOf(this.owner, this.keys[0]);
    return lease && { ...lease, keys: this.keys, ttlMs: this.ttlMs };
  }

  async #joinOn(node: RedlockNode, candidacy: JoinCandidacy): Promise<void> {
    let proposal = Math.max(this.tokenClock.nowUs(), candidacy.token);
    for (let round = 1; round <= MAX_PROPOSALS && !this.#isStopped; round += 1) {
      const vote = await node.requestJoin(candidacy, proposal);
      if (vote.kind !== 'refused') return;
      const nextProposal = findSoonestToken([vote], 1, proposal);
      if (!nextProposal || nextProposal.delayMs > this.maxPauseMs) return;
      if (nextProposal.delayMs > 0) await pause(systemClock, nextProposal.delayMs, { background: true });
      proposal = nextProposal.token;
    }
  }
}

/** The completions under way, by the owners of their leases. */
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
