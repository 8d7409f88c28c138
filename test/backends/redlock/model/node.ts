/** The state of one node for one key. Owners are numbers from 1; tokens and clocks are numbers from 0. */
export interface NodeState {
  readonly owner: number | null;
  /** Which attempt of the owner has the lease; 0 where there is none. */
  readonly attempt: number;
  /** The token that the lease shows; 0 where there is none. The fence is greater where the owner has joined. */
  readonly token: number;
  /** The last token that it granted; 0 for none. */
  readonly fence: number;
  /** From when on it remembers, by its own clock; `null` when it has lost everything, or never had anything. */
  readonly since: number | null;
  readonly clock: number;
}

export const EMPTY: NodeState = { owner: null, attempt: 0, token: 0, fence: 0, since: null, clock: 0 };

/** One acquisition asks again and again, in attempts that are numbered. */
export interface Candidate {
  readonly owner: number;
  readonly attempt: number;
}

export type Answer =
  | { readonly kind: 'granted' }
  | { readonly kind: 'held' }
  | { readonly kind: 'refused'; readonly floor: number; readonly ceiling: number; readonly clock: number };

/**
 * A node answers `owner` who proposes `token`: the model is made of this, and the script `VOTE` is compared with it on a
 * real server. `shown` is the token of the acquisition, where the owner joins this node later.
 */
export function vote(
  node: NodeState,
  {
    owner,
    attempt,
    token,
    shown = token,
    skew,
  }: Candidate & { readonly token: number; readonly shown?: number; readonly skew: number },
): { readonly answer: Answer; readonly node: NodeState } {
  if (node.owner !== null && (node.owner !== owner || node.attempt > attempt))
    return { answer: { kind: 'held' }, node };
  if (node.owner === owner && node.token === shown && node.attempt === attempt)
    return { answer: { kind: 'granted' }, node };
  const { fence, clock } = node;
  const since = node.since ?? clock;
  const floor = Math.max(fence, since + skew, clock - skew);
  const ceiling = fence > clock + skew ? fence + 1 : clock + skew;
  if (token <= floor || token > ceiling) {
    return { answer: { kind: 'refused', floor, ceiling, clock }, node: { ...node, since } };
  }
  return { answer: { kind: 'granted' }, node: { owner, attempt, token: shown, fence: token, since, clock } };
}

/** The answer of a node to an attempt that takes back what it may have: the specification of the script `TAKE_BACK`. */
export function takeBack(node: NodeState, { owner, attempt }: Candidate): NodeState {
  return node.owner === owner && node.attempt <= attempt ? free(node) : node;
}

export function free(node: NodeState): NodeState {
  return { ...node, owner: null, attempt: 0, token: 0 };
}
