import fc from 'fast-check';
import { Redis } from 'ioredis';
import { EVICT, JOIN, TAKE_BACK, VOTE } from '../../../lib/backends/redlock/redlock-scripts.js';
import { RENEW } from '../../../lib/backends/redis/scripts/lease-scripts.js';
import { describeWanted, RedisServer } from '../../support/index.js';
import { type Answer, type Candidate, EMPTY, free, type NodeState, takeBack, vote } from './model/node.js';

const KEYS = ['redlock:{k}', 'redlock:{k}:f', 'redlock:since'] as const;
const EVICTED_KEY = 'redlock:{k}:e';
const START = 1_700_000_000_000_000;
const SKEW = 1_000;
const TTL_MS = 60_000;
const NO_QUARANTINE = 0;
const FIRST: Candidate = { owner: 1, attempt: 1 };

/** Tokens are counted from the node's clock, or from its last one. */
interface Proposal extends Candidate {
  readonly kind: 'vote' | 'join';
  readonly from: 'clock' | 'fence';
  readonly offset: number;
}

/** Something that happens to a node. */
type Event =
  | Proposal
  | ({ readonly kind: 'take back' | 'renew' } & Candidate)
  | { readonly kind: 'evict'; readonly owner: number }
  | { readonly kind: 'clock'; readonly by: number }
  | { readonly kind: 'the lease ends' }
  | { readonly kind: 'all is lost' };

const owner = fc.integer({ min: 1, max: 3 });
const attempt = fc.integer({ min: 9, max: 11 });
const around = (value: number) => [-1, 0, 1].map((step) => value + step);
const offset = fc.oneof(
  fc.constantFrom(...around(0), ...around(SKEW), ...around(-SKEW), ...around(2 * SKEW)),
  fc.integer({ min: -3 * SKEW, max: 3 * SKEW }),
);
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('vote', 'vote', 'join'),
      owner,
      attempt,
      from: fc.constantFrom('clock', 'fence'),
      offset,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('take back', 'renew'), owner, attempt }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('evict'), owner }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('clock'), by: offset }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('the lease ends', 'all is lost') }) },
);

/** The script as it is, but for the clock, which is the test's. */
function withClock({ source }: { readonly source: string }): string {
  const parts = source.split("redis.call('TIME')");
  if (parts.length !== 2) throw new Error('the script reads the clock once');
  return parts.join('{ARGV[#ARGV - 1], ARGV[#ARGV]}');
}

describeWanted(['redlock'], 'the script of %s', () => {
  let redis: Redis;
  afterAll(() => redis.disconnect());
  const server = RedisServer.shared();
  /** The last owner that was evicted. */
  let evicted: number | undefined;
  beforeAll(() => {
    redis = new Redis(server.url);
  });

  it('does on a real server what the model of a node does, whatever happens to it', async () => {
    let events = 0;
    const alike = fc.asyncProperty(fc.array(event, { minLength: 10, maxLength: 60, size: 'max' }), async (history) => {
      await redis.flushall();
      let node: NodeState = { ...EMPTY, clock: START };
      evicted = undefined;
      for (const next of history) {
        node = await happen(next, node);
        await expect(stored()).resolves.toEqual(expected(node));
        events += 1;
      }
    });
    await fc.assert(alike, { numRuns: 100 });
    process.stdout.write(`  ${events} events, compared with the model of a node\n`);
    expect(events).toBeGreaterThan(1_000);
  });

  it('keeps a lease for its TTL, and the token for an hour longer', async () => {
    await redis.flushall();
    await expect(ask(FIRST, START, { ...EMPTY, clock: START })).resolves.toMatchObject({ kind: 'refused' });
    const node: NodeState = { ...EMPTY, since: START, clock: START + 5 * SKEW };
    await expect(ask(FIRST, node.clock, node)).resolves.toEqual({ kind: 'granted' });
    const [lease, fence, since] = await Promise.all(KEYS.map((key) => redis.pttl(key)));
    expect(lease).toBeGreaterThan(TTL_MS - 5_000);
    expect(lease).toBeLessThanOrEqual(TTL_MS);
    expect(fence).toBeGreaterThan(3_600_000 + TTL_MS - 5_000);
    expect(fence).toBeLessThan(3_600_000 + TTL_MS + 5_000);
    expect(since).toBe(-1);
  });

  async function happen(next: Event, node: NodeState): Promise<NodeState> {
    if (next.kind === 'vote' || next.kind === 'join') return propose(next, node);
    if (next.kind === 'clock') return { ...node, clock: node.clock + next.by };
    if (next.kind === 'the lease ends') {
      await redis.del(KEYS[0]);
      return free(node);
    }
    if (next.kind === 'all is lost') {
      await redis.flushall();
      evicted = undefined;
      return { ...EMPTY, clock: node.clock };
    }
    if (next.kind === 'renew') {
      const ours = node.owner === next.owner ? 1 : 0;
      expect(await redis.eval(RENEW.source, 1, KEYS[0], nameOf(next.owner), TTL_MS)).toBe(ours);
      return node;
    }
    if (next.kind === 'evict') {
      const isEvicted = await redis.eval(EVICT.source, 2, KEYS[0], EVICTED_KEY, nameOf(next.owner));
      expect(isEvicted).toBe(node.owner === next.owner ? 1 : 0);
      evicted = next.owner;
      return node.owner === next.owner ? free(node) : node;
    }
    const after = takeBack(node, next);
    const taken = await redis.eval(TAKE_BACK.source, 1, KEYS[0], nameOf(next.owner), next.attempt);
    expect(taken).toBe(after === node ? 0 : 1);
    return after;
  }

  async function propose({ kind, from, offset: off, ...candidate }: Proposal, node: NodeState): Promise<NodeState> {
    const token = (from === 'fence' && node.fence > 0 ? node.fence : node.clock) + off;
    const shown = kind === 'join' ? (node.token > 0 ? node.token : START - SKEW) : undefined;
    const answer = await ask(candidate, token, node, shown);
    if (kind === 'join' && evicted === candidate.owner) {
      expect(answer).toEqual({ kind: 'evicted' });
      return node;
    }
    const spec = vote(node, { ...candidate, token, skew: SKEW, ...(shown === undefined ? {} : { shown }) });
    expect(answer).toEqual(spec.answer);
    return spec.node;
  }

  /** A join where `shown` is given. */
  async function ask(
    { owner: candidate, attempt: number }: Candidate,
    token: number,
    { clock }: NodeState,
    shown?: number,
  ): Promise<Answer | { readonly kind: 'evicted' }> {
    const time = [Math.floor(clock / 1_000_000), clock % 1_000_000];
    const args = [nameOf(candidate), number, token, TTL_MS, '{}', SKEW, NO_QUARANTINE];
    const reply =
      shown === undefined
        ? redis.eval(withClock(VOTE), VOTE.keyCount, ...KEYS, ...args, ...time)
        : redis.eval(withClock(JOIN), JOIN.keyCount, ...KEYS, EVICTED_KEY, ...args, shown, ...time);
    const [kind, ...details] = (await reply) as unknown[];
    if (kind === 'granted' || kind === 'held' || kind === 'evicted') return { kind };
    const [floor = NaN, ceiling = NaN, now = NaN] = details.map(Number);
    return { kind: 'refused', floor, ceiling, clock: now };
  }

  function stored(): Promise<(string | null)[]> {
    return redis.mget(...KEYS);
  }
});

function expected({ owner: holder, attempt: latest, token, fence, since }: NodeState): (string | null)[] {
  return [
    holder === null ? null : `${nameOf(holder)}|${token}|${latest}|{}`,
    fence === 0 ? null : String(fence),
    since === null ? null : String(since),
  ];
}

function nameOf(candidate: number): string {
  return `owner-${candidate}`;
}
