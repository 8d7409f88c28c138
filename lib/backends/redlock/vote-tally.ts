import { randomInt } from 'node:crypto';
import type { Holder, LeaseAttempt } from '../../core/index.js';
import type { RedlockSettings } from './options.js';
import type { QuorumCall } from './quorum-call.js';
import type { RedlockNode, Vote } from './redlock-node.js';
import { findSoonestToken, type Proposal, type TokenWindow } from './token-clock.js';

/** Maximum back-off after a split vote, as a multiple of the vote's duration. */
const MAX_BACK_OFF_FACTOR = 4;
/** Constant part of the maximum back-off, for fast networks. */
const BACK_OFF_BASE_MS = 10;

/** Vote of a node that has no lease of another owner, but refuses the token. */
type RefusedVote = Vote & { readonly kind: 'refused' };
type HeldVote = Vote & { readonly kind: 'held' };

/** The votes of the nodes on one owner and one token, as known when the call was decided. */
export class VoteTally {
  readonly #grantedCount: number;
  readonly #refusedVotes: readonly (readonly [RedlockNode, RefusedVote])[];
  readonly #heldVotes: readonly HeldVote[];
  readonly #unavailableCount: number;
  readonly #isGrantedByFirstAnsweringNode: boolean;

  constructor(
    readonly call: QuorumCall<Vote>,
    readonly token: number,
    private readonly durationMs: number,
    private readonly settings: RedlockSettings,
  ) {
    const votes = [...call.answers];
    this.#grantedCount = call.countAnswers(({ kind }) => kind === 'granted');
    this.#refusedVotes = votes.filter((vote): vote is [RedlockNode, RefusedVote] => vote[1].kind === 'refused');
    this.#heldVotes = votes.map(([, vote]) => vote).filter((vote) => vote.kind === 'held');
    this.#unavailableCount = call.unavailableCount;
    const firstNode = call.nodes.find((node) => call.answers.has(node));
    this.#isGrantedByFirstAnsweringNode = firstNode !== undefined && call.answers.get(firstNode)?.kind === 'granted';
  }

  get isWon(): boolean {
    return this.#grantedCount >= this.call.quorum;
  }

  /**
   * Returns the median of the nodes' clocks. Only a refusal tells the clock of its node: the clock of this process
   * stands in for the nodes that granted.
   */
  medianClockUs(processNowUs: number): number {
    const clocksOfGrants = Array.from({ length: this.#grantedCount }, () => processNowUs);
    const clocksOfRefusals = this.#refusedVotes.map(([, { clockUs }]) => clockUs);
    const clocks = [...clocksOfRefusals, ...clocksOfGrants].toSorted((a, b) => a - b);
    return clocks[Math.floor(clocks.length / 2)] ?? processNowUs;
  }

  /**
   * Returns the proposal of the next round: after refused tokens, the soonest token that a quorum would grant. After a
   * split vote, only the owner with the vote of the first node that has answered, in the order of the nodes, tries
   * again. Returns `undefined` when the attempt ends.
   */
  nextProposal(nowUs: number): Proposal | undefined {
    const betterProposal = this.#findBetterProposal(nowUs);
    if (betterProposal || !this.#isGrantedByFirstAnsweringNode || !this.#isSplitVote) return betterProposal;
    return { token: Math.max(nowUs, this.token), delayMs: randomInt(Math.ceil(this.durationMs) + 1) };
  }

  /** Whether too many nodes are unavailable for a quorum. */
  get hasFailed(): boolean {
    return this.#unavailableCount > this.call.maxFailures;
  }

  /** Whether a quorum of nodes has no lease of another owner. A vote is then lost only for its token. */
  get lacksCommonToken(): boolean {
    return this.#grantedCount + this.#refusedVotes.length >= this.call.quorum;
  }

  createNoQuorumError(): AggregateError {
    return this.call.createNoQuorumError(new Map(this.#refusedVotes.map(([node, { error }]) => [node, error])));
  }

  toRefusal(): LeaseAttempt {
    const { holder } = this.#strongestRival;
    const backOffMs = BACK_OFF_BASE_MS + Math.ceil(this.durationMs * MAX_BACK_OFF_FACTOR);
    const retryAfterMs = this.#isSplitVote ? randomInt(backOffMs) : this.#msUntilFree;
    return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
  }

  #findBetterProposal(nowUs: number): Proposal | undefined {
    if (this.#refusedVotes.length === 0) return undefined;
    const { maxSkewMs, requestTimeoutMs } = this.settings;
    const grantedWindow: TokenWindow = { floor: this.token, ceiling: this.token + maxSkewMs * 1_000 };
    const windows = [
      ...this.#refusedVotes.map(([, vote]) => vote),
      ...Array.from({ length: this.#grantedCount }, () => grantedWindow),
    ];
    const proposal = findSoonestToken(windows, this.call.quorum, nowUs);
    return proposal && proposal.delayMs <= requestTimeoutMs ? proposal : undefined;
  }

  /** Whether no other owner can have a quorum, even with all unknown votes. */
  get #isSplitVote(): boolean {
    const knownVoteCount = this.#grantedCount + this.#refusedVotes.length + this.#heldVotes.length;
    const unknownVoteCount = this.call.nodes.length - knownVoteCount;
    return this.#strongestRival.voteCount + unknownVoteCount < this.call.quorum;
  }

  /** The other owner that most nodes name. */
  get #strongestRival(): { readonly voteCount: number; readonly holder: Holder | undefined } {
    const countByOwner = new Map<string, number>();
    for (const { owner } of this.#heldVotes) countByOwner.set(owner, (countByOwner.get(owner) ?? 0) + 1);
    const voteCount = Math.max(0, ...countByOwner.values());
    return { voteCount, holder: this.#heldVotes.find(({ owner }) => countByOwner.get(owner) === voteCount)?.holder };
  }

  /** Milliseconds until enough leases of other owners end for a quorum; `null` when that is unknown. */
  get #msUntilFree(): number | null {
    const missingVoteCount = this.call.quorum - this.#grantedCount - this.#refusedVotes.length;
    const leftMs = this.#heldVotes.map((vote) => vote.leftMs).toSorted((a, b) => a - b)[missingVoteCount - 1];
    return leftMs === undefined || leftMs === Infinity ? null : leftMs;
  }
}

/**
 * Returns whether further votes would change nothing. Either the token has a quorum, or it cannot get one, and it is
 * known whether other owners or failed nodes are the reason.
 */
export function isVoteDecided(call: QuorumCall<Vote>): boolean {
  const grantedCount = call.countAnswers(({ kind }) => kind === 'granted');
  if (grantedCount >= call.quorum) return true;
  const notGrantingCount = call.nodes.length - grantedCount - call.awaitedCount;
  if (notGrantingCount <= call.maxFailures) return false;
  return call.unavailableCount > call.maxFailures || call.unavailableCount + call.awaitedCount <= call.maxFailures;
}
