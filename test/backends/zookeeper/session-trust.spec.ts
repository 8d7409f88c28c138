import fc from 'fast-check';
import { type Clock, pause } from '../../../lib/core/index.js';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import type { ZooKeeperConnection } from '../../../lib/backends/zookeeper/transport/connection.js';
import { ZooKeeperSession } from '../../../lib/backends/zookeeper/session.js';

/**
 * One run: a leader that hears of this session from a follower, every half tick, until that follower is cut off. Times
 * are in ticks.
 */
interface Run {
  readonly tickMs: number;
  readonly sessionTicks: number;
  /** Time within half a tick at which the leader asks its follower. */
  readonly phase: number;
  /** Request of a caller that gets a lock, or renews it. */
  readonly asks: readonly Ask[];
  /** After the arrival of which of them the follower is cut off, and how soon. */
  readonly cut: { readonly after: number; readonly delay: number };
}

interface Ask {
  readonly at: number;
  /** Time for which the event loop of this process is blocked right before the request. */
  readonly stall: number;
  /** How soon after it there is another one. */
  readonly again: number;
  /** For so long it is in transit to the follower; the other one only until this one is there. */
  readonly transit: number;
}

const MOST_TRANSIT_TICKS = 3;
/** Fraction made of a whole number: most doubles that fast-check draws from 0 to 1 are next to 0. */
const fraction = fc.nat({ max: 1_000_000 }).map((millionths) => millionths / 1_000_000);
const upTo = (most: number) => fraction.map((part) => part * most);
const ask = fc.record<Ask>({
  at: upTo(60),
  stall: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: upTo(20) }),
  again: fc.oneof(upTo(0.6), upTo(2)),
  transit: fc.oneof(fc.constant(0), upTo(MOST_TRANSIT_TICKS)),
});
const runs = fc.record<Run>({
  tickMs: fc.integer({ min: 1, max: 2_000 }),
  sessionTicks: fc.integer({ min: 6, max: 20 }),
  phase: fraction,
  asks: fc.array(ask, { minLength: 5, maxLength: 20 }),
  cut: fc.record({ after: fc.nat({ max: 19 }), delay: upTo(0.5) }),
});

it('no lock is trusted for longer than the leader keeps the session, whenever its follower is cut off', async () => {
  let grants = 0;
  await fc.assert(
    fc.asyncProperty(runs, async (run) => {
      const outcome = await simulate(run);
      grants += outcome.grants;
      expect(outcome.trustedUntil).toBeLessThanOrEqual(outcome.keptUntil + 1e-6);
    }),
    { numRuns: 1_000 },
  );
  expect(grants).toBeGreaterThan(5_000);
});

async function simulate({ tickMs, sessionTicks, phase, asks, cut }: Run) {
  const clock = new ManualClock();
  const connection = new FakeConnection(clock, sessionTicks * tickMs);
  // All that a session uses of its connection.
  const session = new ZooKeeperSession(connection as unknown as ZooKeeperConnection, clock);
  let [trustedUntil, grants] = [0, 0];
  const take = async (): Promise<void> => {
    const askedAt = clock.now();
    await connection.send();
    trustedUntil = Math.max(trustedUntil, session.getTrustStart(askedAt) + session.times.trustMs);
    grants += 1;
  };
  const inOrder = asks.toSorted((a, b) => a.at - b.at);
  for (const [place, { at, stall, again, transit }] of inOrder.entries()) {
    await clock.advance(Math.max(0, at * tickMs - clock.now()));
    clock.stall(stall * tickMs);
    connection.transitMs = transit * tickMs;
    void take();
    await clock.advance(again * tickMs);
    connection.transitMs = 0;
    void take();
    if (place === cut.after % asks.length) connection.cutAt = connection.lastArrivalAt + cut.delay * tickMs;
  }
  await clock.advance(MOST_TRANSIT_TICKS * tickMs);
  session.end();
  const lastReplyAt = lastHeard(connection, tickMs / 2, phase);
  return { trustedUntil, keptUntil: lastReplyAt + connection.negotiatedTtlMs, grants };
}

/**
 * Last time at which the leader heard of the session: at the handshake, or when it asked and there was something new.
 */
function lastHeard({ touches, cutAt, lastArrivalAt }: FakeConnection, everyMs: number, phase: number): number {
  let heard = 0;
  const end = Math.min(cutAt, lastArrivalAt) + everyMs;
  for (let at = phase * everyMs, last = 0; at < Math.min(cutAt, end); last = at, at += everyMs) {
    if (touches.some((touch) => touch >= last && touch <= at)) heard = at;
  }
  return heard;
}

/** Answers what goes to the leader when it arrives, in the order in which it was sent, until the follower is cut off. */
class FakeConnection {
  readonly isAlive = true;
  readonly openedAt = 0;
  readonly identity = { id: Buffer.alloc(8), password: Buffer.alloc(16) };
  /** Time at which the follower heard of the session; the leader has created the session. */
  readonly touches = [0];
  lastReplyAt = 0;
  transitMs = 0;
  cutAt = Infinity;
  onLeaderAnswer: (sentAt: number) => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    readonly negotiatedTtlMs: number,
  ) {}

  get lastArrivalAt(): number {
    return this.touches.at(-1) ?? 0;
  }

  async send(): Promise<void> {
    const sentAt = this.clock.now();
    const arrivesAt = Math.max(sentAt + this.transitMs, this.lastArrivalAt);
    this.touches.push(arrivesAt);
    await pause(this.clock, arrivesAt - sentAt);
    if (arrivesAt >= this.cutAt) return new Promise(() => undefined);
    this.lastReplyAt = this.clock.now();
    this.onLeaderAnswer(sentAt);
  }
}
