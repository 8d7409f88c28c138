import { randomInt } from 'node:crypto';
import type { LeaseAttempt } from '../../core/index.js';
import type { Poll } from './poll.js';
import { quorumError } from './quorum-error.js';
import type { RedlockNode, Vote } from './redlock-node.js';
import { soonestToken, type TokenWindow } from './token-clock.js';

/** The shortest back-off after a split vote is up to so long; longer where a vote takes longer. */
const SPLIT_BACKOFF_MS = 10;
const SPLIT_BACKOFF_ROUNDS = 4;

type Refused = Vote & { readonly kind: 'refused' };
type Held = Vote & { readonly kind: 'held' };

/** What the nodes' votes for one owner and one token amount to. */
export class Ballot {
  readonly granted: number;
  readonly #refused: readonly (readonly [RedlockNode, Refused])[];
  readonly #held: readonly Held[];

  constructor(
    readonly poll: Poll<RedlockNode, Vote>,
    readonly token: number,
    private readonly skewUs: number,
  ) {
    const votes = [...poll.answers];
    this.granted = poll.count(({ kind }) => kind === 'granted');
    this.#refused = votes.filter((vote): vote is [RedlockNode, Refused] => vote[1].kind === 'refused');
    this.#held = votes.map(([, vote]) => vote).filter((vote) => vote.kind === 'held');
  }

  get won(): boolean {
    return this.granted >= this.poll.quorum;
  }

  /**
   * Whether the nodes, and not another owner, are in the way. A node that refuses what the others would take is as good as
   * one that is down.
   */
  get failed(): boolean {
    return this.poll.failed + this.#refused.length > this.poll.spare && this.#held.length <= this.poll.spare;
  }

  /** What the nodes say that the time is: those that took the token agree with ours, and the middle one is right. */
  now(ours: number): number {
    const clocks = [
      ...this.#refused.map(([, { clock }]) => clock),
      ...Array.from({ length: this.granted }, () => ours),
    ];
    return clocks.toSorted((a, b) => a - b)[Math.floor(clocks.length / 2)] ?? ours;
  }

  /** The token that a quorum would take instead, and when. */
  betterToken(now: number): { readonly token: number; readonly inMs: number } | undefined {
    if (this.#refused.length === 0) return undefined;
    const taken: TokenWindow = { floor: this.token, ceiling: this.token + this.skewUs };
    const windows = [...this.#refused.map(([, vote]) => vote), ...Array.from({ length: this.granted }, () => taken)];
    return soonestToken(windows, this.poll.quorum, now);
  }

  failure(): AggregateError {
    const refusals = this.#refused.map(
      ([node, { problem }]) => [node, new Error(`${node.name}: refuses the token: ${problem}`)] as const,
    );
    return quorumError(this.poll, new Map(refusals));
  }

  /** Somebody else is in the way: who, and for how long. */
  refusal(tookMs: number): LeaseAttempt {
    const votes = new Map<string, number>();
    for (const { owner } of this.#held) votes.set(owner, (votes.get(owner) ?? 0) + 1);
    const [leader, most] = [...votes].toSorted(([, a], [, b]) => b - a)[0] ?? ['', 0];
    const holder = this.#held.find(({ owner }) => owner === leader)?.holder;
    const split = most + this.poll.nodes.length - this.poll.answers.size < this.poll.quorum;
    const retryAfterMs = split ? randomInt(backOffMs(tookMs)) : this.#freeInMs();
    return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
  }

  /** When the leases of so many others have ended that a quorum of nodes is free, by what is known. */
  #freeInMs(): number | null {
    const free = this.granted + this.#refused.length;
    const left = this.#held.map(({ leftMs }) => leftMs).toSorted((a, b) => a - b)[this.poll.quorum - free - 1];
    return left === undefined || left === Infinity ? null : left;
  }
}

/**
 * When nothing that is still to come changes what has to be done: the token has a quorum; or it can have none, and it is
 * clear whether that is because of the others or because of the nodes.
 */
export function isDecided(poll: Poll<RedlockNode, Vote>): boolean {
  const granted = poll.count(({ kind }) => kind === 'granted');
  if (granted >= poll.quorum) return true;
  const against = poll.nodes.length - granted - poll.waiting;
  if (against <= poll.spare) return false;
  return poll.failed > poll.spare || poll.failed + poll.waiting <= poll.spare;
}

function backOffMs(tookMs: number): number {
  return SPLIT_BACKOFF_MS + Math.ceil(tookMs * SPLIT_BACKOFF_ROUNDS);
}
