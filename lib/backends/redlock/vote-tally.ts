import { randomInt } from 'node:crypto';
import type { Holder, LeaseAttempt } from '../../core/index.js';
import type { RedlockSettings } from './options.js';
import type { QuorumCall } from './quorum-call.js';
import type { RedlockNode, Vote } from './redlock-node.js';
import { type Proposal, soonestToken, type TokenWindow } from './token-clock.js';

/** The back-off after a split vote: at most so many times as long as the vote took, and more as networks vary. */
const BACKOFF_VOTES = 4;
const BACKOFF_MS = 10;

type Refused = Vote & { readonly kind: 'refused' };
type Held = Vote & { readonly kind: 'held' };

/** Counts the nodes' votes for one owner and one token, as they were when the vote was decided. */
export class VoteTally {
  readonly #granted: number;
  readonly #refused: readonly (readonly [RedlockNode, Refused])[];
  readonly #held: readonly Held[];
  readonly #failed: number;
  readonly #leads: boolean;

  constructor(
    readonly call: QuorumCall<Vote>,
    readonly token: number,
    private readonly tookMs: number,
    private readonly settings: RedlockSettings,
  ) {
    const votes = [...call.answers];
    this.#granted = call.count(({ kind }) => kind === 'granted');
    this.#refused = votes.filter((vote): vote is [RedlockNode, Refused] => vote[1].kind === 'refused');
    this.#held = votes.map(([, vote]) => vote).filter((vote) => vote.kind === 'held');
    this.#failed = call.failed;
    const first = call.nodes.find((node) => call.answers.has(node));
    this.#leads = first !== undefined && call.answers.get(first)?.kind === 'granted';
  }

  get won(): boolean {
    return this.#granted >= this.call.quorum;
  }

  /** The middle one of the nodes' clocks. A node that took the token agrees with this process. */
  now(ours: number): number {
    const agreeing = Array.from({ length: this.#granted }, () => ours);
    const clocks = [...this.#refused.map(([, { clock }]) => clock), ...agreeing].toSorted((a, b) => a - b);
    return clocks[Math.floor(clocks.length / 2)] ?? ours;
  }

  /**
   * Where nodes refuse, the token that a quorum of them takes. Where the vote is split, the owner that has the first of
   * the nodes asks again, and all others give way: one of them gets on.
   */
  next(now: number): Proposal | undefined {
    const better = this.#betterToken(now);
    if (better || !this.#leads || !this.#split) return better;
    return { token: Math.max(now, this.token), inMs: randomInt(Math.ceil(this.tookMs) + 1) };
  }

  /** Too many nodes are down. */
  get failed(): boolean {
    return this.#failed > this.call.spare;
  }

  /** No other owner is in the way, and yet the nodes do not take the same token. */
  get stuck(): boolean {
    return this.#granted + this.#refused.length >= this.call.quorum;
  }

  failure(): AggregateError {
    return this.call.error(new Map(this.#refused.map(([node, { error }]) => [node, error])));
  }

  /** Somebody else is in the way: who, and for how long. */
  refusal(): LeaseAttempt {
    const { holder } = this.#rival;
    const retryAfterMs = this.#split ? randomInt(BACKOFF_MS + Math.ceil(this.tookMs * BACKOFF_VOTES)) : this.#freeInMs;
    return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
  }

  #betterToken(now: number): Proposal | undefined {
    if (this.#refused.length === 0) return undefined;
    const { maxSkewMs, requestTimeoutMs } = this.settings;
    const taken: TokenWindow = { floor: this.token, ceiling: this.token + maxSkewMs * 1_000 };
    const windows = [...this.#refused.map(([, vote]) => vote), ...Array.from({ length: this.#granted }, () => taken)];
    const better = soonestToken(windows, this.call.quorum, now);
    return better && better.inMs <= requestTimeoutMs ? better : undefined;
  }

  /** No owner has a quorum, as far as is known. */
  get #split(): boolean {
    const unknown = this.call.nodes.length - this.#granted - this.#refused.length - this.#held.length;
    return this.#rival.votes + unknown < this.call.quorum;
  }

  /** The one of the others with most votes. */
  get #rival(): { readonly votes: number; readonly holder: Holder | undefined } {
    const votes = new Map<string, number>();
    for (const { owner } of this.#held) votes.set(owner, (votes.get(owner) ?? 0) + 1);
    const most = Math.max(0, ...votes.values());
    return { votes: most, holder: this.#held.find(({ owner }) => votes.get(owner) === most)?.holder };
  }

  /** When enough leases of others have ended to free a quorum of nodes, as far as is known. */
  get #freeInMs(): number | null {
    const needed = this.call.quorum - this.#granted - this.#refused.length;
    const left = this.#held.map(({ leftMs }) => leftMs).toSorted((a, b) => a - b)[needed - 1];
    return left === undefined || left === Infinity ? null : left;
  }
}

/**
 * Whether votes that are still to come change nothing: the token has a quorum; or it can have none, and the reason is
 * clear, other owners or the nodes.
 */
export function isDecided(call: QuorumCall<Vote>): boolean {
  const granted = call.count(({ kind }) => kind === 'granted');
  if (granted >= call.quorum) return true;
  const against = call.nodes.length - granted - call.waiting;
  if (against <= call.spare) return false;
  return call.failed > call.spare || call.failed + call.waiting <= call.spare;
}
