/** What one node keeps for one key. Owners are numbers from 1; tokens and clocks are numbers from 0. */
export interface NodeState {
  readonly owner: number | null;
  /** The last token that it granted; 0 for none. */
  readonly fence: number;
  /** From when on it remembers, by its own clock; `null` when it has lost everything, or never had anything. */
  readonly since: number | null;
  readonly clock: number;
}

export const EMPTY: NodeState = { owner: null, fence: 0, since: null, clock: 0 };

export type Answer =
  | { readonly kind: 'granted' }
  | { readonly kind: 'held' }
  | { readonly kind: 'refused'; readonly floor: number; readonly ceiling: number; readonly clock: number };

/**
 * What a node does when `owner` proposes `token`: the specification of the script `VOTE`, which is compared with it on a real
 * server, and what the model is made of. While there is a lease, the fence is its token.
 */
export function vote(
  node: NodeState,
  { owner, token, skew }: { readonly owner: number; readonly token: number; readonly skew: number },
): { readonly answer: Answer; readonly node: NodeState } {
  if (node.owner !== null && node.owner !== owner) return { answer: { kind: 'held' }, node };
  if (node.owner === owner && node.fence === token) return { answer: { kind: 'granted' }, node };
  const { fence, clock } = node;
  const since = node.since ?? clock;
  const floor = Math.max(fence, since + skew, clock - skew);
  const ceiling = fence > clock + skew ? fence + 1 : clock + skew;
  if (token <= floor || token > ceiling) {
    return { answer: { kind: 'refused', floor, ceiling, clock }, node: { ...node, since } };
  }
  return { answer: { kind: 'granted' }, node: { owner, fence: token, since, clock } };
}
