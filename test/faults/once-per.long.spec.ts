import { atLeastMs, type Child, spawnChild, timeLimitOf, wantedOf } from '../support/index.js';
import { type BackendName, registered } from '../backends/registry.js';
import type { CronApi, Try } from '../support/harness-cron-child.js';

const TICKS = Number(process.env.ONCE_TICKS ?? 12);
/** With so many ticks in which the machine was quick enough, and after so many rounds at the most, the run is over. */
const ENOUGH_TICKS = Math.floor(TICKS / 2) + 1;
const MOST_ROUNDS = 10;
const PROCESSES = 5;
const PERIOD_MS = atLeastMs(400);
/** The greatest difference of two clocks, and of a blocked event loop, as parts of a period. */
const CLOCKS = 1 / 5;
const BLOCKED = 1 / 10;
const MIN_HOLD = 1 / 2;
const SESSION_TTL_MS = 20_000;
/** The run in which a process is killed: its lease ends long before its tick, which no session outlives. */
const KILLED = { periodMs: 60_000, ttlMs: 2_000 };

/** Not `getset`: two who find an ended lease there close the key for a `ttlMs`, which is longer than a period here. */
const KEPT_BY: readonly BackendName[] = [
  'redis-queue',
  'redis-plain',
  'redlock',
  'postgres',
  'mariadb',
  'sqlite',
  'memcached-meta',
  'memcached-classic',
  'etcd',
  'zookeeper',
  'zookeeper-simple',
];

/** On all backends at once: most of the time everybody waits. */
describe(`${PROCESSES} processes whose clocks differ, and a job that each of them starts ${TICKS} times`, () => {
  const names = wantedOf(KEPT_BY);
  const harnesses = names.map((name) => registered(name).harness({ sessionTtlMs: SESSION_TTL_MS }));
  let children: Child<CronApi>[] = [];
  const rounds: Round[] = [];
  let afterKill: Try[] = [];

  beforeAll(
    async () => {
      if (names.length === 0) return;
      const file = new URL('../support/harness-cron-child.ts', import.meta.url);
      const spawned = Array.from({ length: PROCESSES }, () => spawnChild<CronApi>(file));
      await Promise.all(harnesses.map((harness) => harness.start()));
      children = await Promise.all(spawned);
      const connections = harnesses.map((harness) => harness.connection?.());
      for (const [place, connection] of connections.entries()) {
        if (!connection) throw new Error('other processes have to connect');
        const backend = names[place] ?? '';
        await Promise.all(children.map((child) => child.call('open', { backend, connection })));
      }
      // On a busy machine timers may be too late in most ticks of a round: the next one gives them more time.
      do {
        const periodMs = PERIOD_MS * (rounds.length + 1);
        rounds.push({ periodMs, tries: await run(children, { ticks: TICKS, periodMs }) });
      } while (rounds.length < MOST_ROUNDS && names.some((name) => exactTicksOf(rounds, name).length < ENOUGH_TICKS));
      const [victim, ...others] = children;
      await victim?.call('hang', KILLED);
      await victim?.kill();
      // At once, and when the lease has ended.
      afterKill = await run(others, { ticks: 2, periodMs: KILLED.ttlMs * 1.5 });
    },
    ((MOST_ROUNDS * (MOST_ROUNDS + 1)) / 2) * TICKS * PERIOD_MS + timeLimitOf(300_000),
  );
  afterAll(async () => {
    await Promise.all(children.map((child) => child.kill()));
    await Promise.all(harnesses.map((harness) => harness.stop()));
  }, timeLimitOf(300_000));

  for (const name of names) {
    it(`${name} has it run once a tick, as often as there are ticks`, () => {
      const exact = exactTicksOf(rounds, name);
      const runs = exact.map((asked) => asked.filter(({ ran }) => ran).length);
      process.stdout.write(
        `${name}: ${TICKS * rounds.length} ticks of ${PERIOD_MS} ms or more; clocks and timers were exact enough in ${exact.length}\n`,
      );
      expect(runs).toEqual(runs.map(() => 1));
      expect(exact.length).toBeGreaterThanOrEqual(ENOUGH_TICKS);
    });

    it(`${name} has no tick twice whose process is killed by SIGKILL`, () => {
      const asked = afterKill.filter(({ backend }) => backend === name);
      expect(asked).toHaveLength(2 * (PROCESSES - 1));
      expect(asked.filter(({ ran }) => ran)).toEqual([]);
    });
  }
});

interface Round {
  readonly periodMs: number;
  readonly tries: readonly Try[];
}

/** Each asks on every backend at every tick of its own clock. */
async function run(
  children: readonly Child<CronApi>[],
  schedule: { readonly ticks: number; readonly periodMs: number },
): Promise<Try[]> {
  const { periodMs } = schedule;
  const startsAt = performance.timeOrigin + performance.now() + periodMs;
  const shares = children.map((child, place) => {
    const clockLateMs = (CLOCKS * periodMs * place) / (PROCESSES - 1);
    return child.call('run', { ...schedule, startsAt, blockedMs: BLOCKED * periodMs, clockLateMs });
  });
  return (await Promise.all(shares)).flat();
}

/** The tries in those ticks of a backend in which clocks and timers differed by less than what a job may be off. */
function exactTicksOf(rounds: readonly Round[], name: BackendName): Try[][] {
  return rounds.flatMap(({ periodMs, tries }) => {
    const ours = tries.filter(({ backend }) => backend === name);
    const ticks = Array.from({ length: TICKS }, (_, tick) => ours.filter((one) => one.tick === tick));
    return ticks.filter((_, tick) => isExact(ticks, tick, periodMs));
  });
}

/** Whether the differences in this tick, and in the one before, were less than what a job may be off. */
function isExact(ticks: readonly (readonly Try[])[], tick: number, periodMs: number): boolean {
  const [asked, before] = [ticks[tick] ?? [], ticks[tick - 1] ?? []];
  const last = Math.max(...asked.map(({ answeredAt }) => answeredAt));
  const first = Math.min(...asked.map(({ askedAt }) => askedAt));
  const ranBefore = Math.max(-Infinity, ...before.filter(({ ran }) => ran).map(({ answeredAt }) => answeredAt));
  return last - first < MIN_HOLD * periodMs && first - ranBefore > (MIN_HOLD + BLOCKED) * periodMs;
}
