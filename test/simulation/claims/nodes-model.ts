import type * as Core from 'nestjs-distributed-lock/core';
import { type Claim, MAX_PERMITS, type Obstacle } from 'nestjs-distributed-lock/core';

/** The core's rule for a line of nodes, or that of a mutant. */
export type NodesRule = Pick<typeof Core, 'canAwaitGrant' | 'findObstacle'>;

export interface NodesBounds {
  readonly longest: number;
  readonly arrivals: number;
}

/** One claim in a line of nodes, as ZooKeeper and etcd keep it, and what its process does. */
interface Node {
  readonly claim: Claim;
  readonly id: number;
  /** `awake`: looks next. `asleep`: waits for its watch. `inside`: owes its word. `told`: has given it. */
  readonly state: 'awake' | 'asleep' | 'inside' | 'told';
  /** The node whose end or word wakes it, or any end. */
  readonly watches?: { readonly until: Obstacle['until']; readonly id: number | undefined };
}

type Line = readonly Node[];

const claimsBefore = (line: Line, at: number): Claim[] => line.slice(0, at).map(({ claim }) => claim);

/** Every line of these clients, who come, look, give their word, and leave or die. */
export function exploreNodes(rule: NodesRule, kinds: readonly Claim[], { longest, arrivals }: NodesBounds) {
  const seen = new Set<string>();
  const open: { line: Line; came: number }[] = [{ line: [], came: 0 }];
  const wrong: Line[] = [];
  for (let state = open.pop(); state; state = open.pop()) {
    const { line, came } = state;
    if (isStuck(line) || isOverfull(line)) wrong.push(line);
    for (const next of after(rule, line, came < arrivals ? kinds : [], longest, came)) {
      const nextCame = came + (next.length > line.length ? 1 : 0);
      const name = stateOf(next, nextCame);
      if (hasWokenInVain(line, next)) wrong.push(next);
      if (seen.has(name)) continue;
      seen.add(name);
      open.push({ line: next, came: nextCame });
    }
  }
  return { states: seen.size, wrong };
}

/** All that may happen next: somebody comes, leaves or dies, looks, or gives its word. */
function* after(
  rule: NodesRule,
  line: Line,
  kinds: readonly Claim[],
  longest: number,
  nextId: number,
): Generator<Line> {
  if (line.length < longest) for (const claim of kinds) yield [...line, { claim, id: nextId, state: 'awake' }];
  for (const [at, node] of line.entries()) {
    const { id, state } = node;
    yield woken(line.toSpliced(at, 1), (watches) => watches.until === 'departure' || watches.id === id);
    if (state === 'awake') yield looked(rule, line, at, node);
    if (state !== 'inside') continue;
    const told = line.with(at, { ...node, state: 'told' });
    yield woken(told, (watches) => watches.id === id);
  }
}

function woken(line: Line, isEvent: (watches: NonNullable<Node['watches']>) => boolean): Line {
  return line.map((node) => {
    const { claim, id, watches } = node;
    return watches && isEvent(watches) ? { claim, id, state: 'awake' as const } : node;
  });
}

function looked(rule: NodesRule, line: Line, at: number, { claim, id }: Node): Line {
  const obstacle = rule.findObstacle(claim, claimsBefore(line, at));
  const owesWord = line.slice(at + 1).some((behind) => rule.canAwaitGrant(behind.claim, claim));
  if (!obstacle) return line.with(at, { claim, id, state: owesWord ? 'inside' : 'told' });
  const { until } = obstacle;
  return line.with(at, { claim, id, state: 'asleep', watches: { until, id: line[obstacle.at ?? -1]?.id } });
}

function isStuck(line: Line): boolean {
  if (line.some(({ state }) => state === 'awake' || state === 'inside')) return false;
  return line.some(
    ({ claim, state }, at) => state === 'asleep' && taken([...claimsBefore(line, at), claim]) <= claim.limit,
  );
}

function isOverfull(line: Line): boolean {
  const inside = line.filter(({ state }) => state === 'inside' || state === 'told').map(({ claim }) => claim);
  return taken(inside) > Math.max(...inside.map(({ limit }) => limit), 0);
}

/** Where nobody gives up, a reader is woken once: by the end of a writer who was the last in its way. */
function hasWokenInVain(line: Line, next: Line): boolean {
  const left = line.find(({ id }) => next.every((node) => node.id !== id));
  if (left?.state !== 'inside' && left?.state !== 'told') return false;
  return next.some(({ claim, id, state }, at) => {
    const wasAsleep = line.some((node) => node.id === id && node.state === 'asleep');
    const isReader = claim.permits === 1 && claim.limit > MAX_PERMITS;
    return isReader && wasAsleep && state === 'awake' && taken([...claimsBefore(next, at), claim]) > claim.limit;
  });
}

function taken(claims: readonly Claim[]): number {
  return claims.reduce((sum, { permits }) => sum + permits, 0);
}

/** Equal for states from which the same can happen. */
function stateOf(line: Line, came: number): string {
  const places = new Map(line.map(({ id }, at) => [id, at]));
  const nodes = line.map(({ claim, state, watches }) => {
    const at = watches?.id === undefined ? '' : places.get(watches.id);
    return `${claim.permits}/${claim.limit} ${state} ${watches?.until ?? ''} ${at ?? 'gone'}`;
  });
  return `${came};${nodes.join(';')}`;
}
