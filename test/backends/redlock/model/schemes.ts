import { type Candidate, free, type NodeState, takeBack, vote } from './node.js';

/** How tokens are made. */
export interface Scheme {
  /** The effect of a request on a node: its next state, and the number that its vote carries; `null` is no vote. */
  vote(
    node: NodeState,
    candidate: Candidate,
    proposal: number,
  ): { readonly node: NodeState; readonly vote: number | null };
  /** The effect of a request that frees what a refused attempt may have, whenever it comes. */
  takeBack(node: NodeState, candidate: Candidate): NodeState;
  /** The token of a lease for which a quorum has voted. */
  tokenOf(votes: readonly number[]): number;
  /** Whether votes for an earlier proposal of the same owner count for the present one. */
  readonly mixesRounds?: boolean;
}

/** How far tokens may be from clocks, both in ticks. */
export const SKEW = 1;

/** The scheme of `redlock()`. */
export const PROPOSED: Scheme = {
  vote: (node, candidate, proposal) => proposed(node, candidate, proposal, SKEW),
  takeBack,
  tokenOf: (votes) => Math.max(...votes),
};

const LONG_AGO = -1_000;
const WIDE = 100;

/** The same on nodes that have always been there, with a skew beyond all tokens: only the fence decides. */
export const PROPOSED_WITHOUT_CLOCK: Scheme = {
  ...PROPOSED,
  vote: (node, candidate, proposal) => proposed({ ...node, since: LONG_AGO }, candidate, proposal, WIDE),
};

/** Faulty: a node that lost everything begins again with its clock as it is. */
export const WITHOUT_SINCE: Scheme = {
  ...PROPOSED,
  vote: (node, candidate, proposal) => PROPOSED.vote({ ...node, since: node.since ?? -2 * SKEW }, candidate, proposal),
};

/** Faulty: an attempt takes back whatever its owner has, also what a later attempt has won. */
export const TAKEN_BACK_BY_OWNER: Scheme = {
  ...PROPOSED_WITHOUT_CLOCK,
  takeBack: (node, { owner }) => (node.owner === owner ? free(node) : node),
};

/** Faulty: a vote of an earlier attempt that comes late takes the place of a later one's. */
export const LATE_VOTES: Scheme = {
  ...PROPOSED_WITHOUT_CLOCK,
  vote: (node, candidate, proposal) => {
    const known =
      node.owner === candidate.owner ? { ...node, attempt: Math.min(node.attempt, candidate.attempt) } : node;
    return PROPOSED_WITHOUT_CLOCK.vote(known, candidate, proposal);
  },
};

/** Faulty: a candidate that raised its proposal counts the votes for the former one too. */
export const MIXED_ROUNDS: Scheme = { ...PROPOSED_WITHOUT_CLOCK, mixesRounds: true };

/** Faulty: each node counts its own grants, and the token is the greatest count of the quorum, written back nowhere. */
export const GREATEST_COUNTER: Scheme = {
  vote: (node, { owner, attempt }) => {
    if (node.owner === owner) return { node, vote: node.fence };
    if (node.owner !== null) return { node, vote: null };
    return { node: { ...node, owner, attempt, fence: node.fence + 1 }, vote: node.fence + 1 };
  },
  takeBack,
  tokenOf: (votes) => Math.max(...votes),
};

function proposed(from: NodeState, candidate: Candidate, token: number, skew: number): ReturnType<Scheme['vote']> {
  const { answer, node } = vote(from, { ...candidate, token, skew });
  return { node, vote: answer.kind === 'granted' ? token : null };
}

/** The Redlock of the books, which has no token: all of them are the same. */
export const NO_TOKEN: Scheme = {
  vote: (node, { owner, attempt }) => {
    const open = node.owner === null || node.owner === owner;
    return open ? { node: { ...node, owner, attempt }, vote: 0 } : { node, vote: null };
  },
  takeBack,
  tokenOf: () => 0,
};
