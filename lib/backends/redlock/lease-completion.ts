import { pause, systemClock } from '../../core/index.js';
import type { QuorumCall } from './quorum-call.js';
import type { JoinCandidacy, RedlockNode } from './redlock-node.js';
import { soonestToken, type TokenClock } from './token-clock.js';

/** How often a node is asked: what it answers to the first proposal says which token it takes. */
const MAX_PROPOSALS = 2;

/**
 * Takes a key for its holder on the nodes that do not have it: they missed the vote, refused its token, or have lost
 * their data. Else one more failure would end the lock.
 *
 * It starts with each renewal, and acts when a quorum has renewed: until then another owner may be the holder. A node
 * grants the lease as it votes: never where another owner has one, and with a proposal that is greater than all that it
 * granted or may have forgotten. The proposal is nobody's token. It only raises the node's fence; the lease shows the
 * token of the acquisition. A grant counts for no acquisition, and for no renewal before the next.
 */
export class LeaseCompletion {
  #isOver = false;

  constructor(
    private readonly keys: JoinCandidacy['keys'],
    private readonly owner: string,
    private readonly ttlMs: number,
    private readonly tokens: TokenClock,
    /** How long a node is waited for whose clock is not ready for the proposal. */
    private readonly maxWaitMs: number,
  ) {}

  /** Asks no node from now on: the owner releases the key. A node gets the release after what it was asked before. */
  stop(): void {
    this.#isOver = true;
  }

  /** Resolves when each node has the lease, or does not take it. Never rejects. */
  async run(renewal: QuorumCall<boolean>): Promise<void> {
    const mayLackIt = renewal.nodes.filter((node) => renewal.answers.get(node) !== true && !node.down);
    let lease: Promise<JoinCandidacy | undefined> | undefined;
    const complete = async (node: RedlockNode): Promise<void> => {
      await renewal.heard.get(node);
      if (renewal.answers.get(node) !== false || this.#isOver) return;
      const candidacy = await (lease ??= this.#readLease(renewal));
      if (candidacy) await this.#join(node, candidacy);
    };
    await Promise.allSettled(mayLackIt.map(complete));
  }

  async #readLease({ answers }: QuorumCall<boolean>): Promise<JoinCandidacy | undefined> {
    const [node] = [...answers].find(([, hasRenewed]) => hasRenewed) ?? [];
    const lease = await node?.readLease(this.keys[0], this.owner);
    return lease && { ...lease, keys: this.keys, ttlMs: this.ttlMs };
  }

  async #join(node: RedlockNode, candidacy: JoinCandidacy): Promise<void> {
    let proposal = Math.max(this.tokens.now(), candidacy.token);
    for (let round = 1; round <= MAX_PROPOSALS && !this.#isOver; round += 1) {
      const vote = await node.join(candidacy, proposal);
      if (vote.kind !== 'refused') return;
      const next = soonestToken([vote], 1, proposal);
      if (!next || next.inMs > this.maxWaitMs) return;
      if (next.inMs > 0) await pause(systemClock, next.inMs, { background: true });
      proposal = next.token;
    }
  }
}

/** The completions under way, by the owners of their leases. */
export class LeaseCompletions {
  readonly #byOwner = new Map<string, Set<LeaseCompletion>>();

  add(owner: string, completion: LeaseCompletion): void {
    const completions = this.#byOwner.get(owner) ?? new Set();
    this.#byOwner.set(owner, completions.add(completion));
  }

  delete(owner: string, completion: LeaseCompletion): void {
    const completions = this.#byOwner.get(owner);
    completions?.delete(completion);
    if (completions?.size === 0) this.#byOwner.delete(owner);
  }

  stop(owner: string): void {
    for (const completion of this.#byOwner.get(owner) ?? []) completion.stop();
    this.#byOwner.delete(owner);
  }
}
