import { type NodeState, vote } from './node.js';

/** How tokens are made. */
export interface Scheme {
  /** What a node does with a request: its next state, and the number that its vote carries; `null` is no vote. */
  vote(node: NodeState, owner: number, proposal: number): { readonly node: NodeState; readonly vote: number | null };
  /** The token of a lease for which a quorum has voted. */
  tokenOf(votes: readonly number[]): number;
  /** Whether votes for an earlier proposal of the same owner count for the present one. */
  readonly mixesRounds?: boolean;
}

/** How far tokens may be from clocks, both in ticks. */
export const SKEW = 1;

/** What `redlock()` does. */
export const PROPOSED: Scheme = {
  vote: (node, owner, proposal) => proposed(node, owner, proposal, SKEW),
  tokenOf: (votes) => Math.max(...votes),
};

const LONG_AGO = -1_000;
const WIDE = 100;

/** The same on nodes that have always been there, with a skew beyond all tokens: only the fence decides. */
export const PROPOSED_WITHOUT_CLOCK: Scheme = {
  ...PROPOSED,
  vote: (node, owner, proposal) => proposed({ ...node, since: LONG_AGO }, owner, proposal, WIDE),
};

/** Faulty: a node that lost everything begins again with its clock as it is. */
export const WITHOUT_SINCE: Scheme = {
  ...PROPOSED,
  vote: (node, owner, proposal) => PROPOSED.vote({ ...node, since: node.since ?? -2 * SKEW }, owner, proposal),
};

/** Faulty: a candidate that raised its proposal counts the votes for the former one too. */
export const MIXED_ROUNDS: Scheme = { ...PROPOSED_WITHOUT_CLOCK, mixesRounds: true };

/** Faulty: each node counts its own grants, and the token is the greatest count of the quorum, written back nowhere. */
export const GREATEST_COUNTER: Scheme = {
  vote: (node, owner) => {
    if (node.owner === owner) return { node, vote: node.fence };
    if (node.owner !== null) return { node, vote: null };
    return { node: { ...node, owner, fence: node.fence + 1 }, vote: node.fence + 1 };
  },
  tokenOf: (votes) => Math.max(...votes),
};

function proposed(from: NodeState, owner: number, token: number, skew: number): ReturnType<Scheme['vote']> {
  const { answer, node } = vote(from, { owner, token, skew });
  return { node, vote: answer.kind === 'granted' ? token : null };
}

/** The Redlock of the books, which has no token: all of them are the same. */
export const NO_TOKEN: Scheme = {
  vote: (node, owner) => {
    const free = node.owner === null || node.owner === owner;
    return free ? { node: { ...node, owner }, vote: 0 } : { node, vote: null };
  },
  tokenOf: () => 0,
};
