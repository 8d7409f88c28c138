import { aborted, describeWanted, FaultProxy, timeLimitOf } from '../../support/index.js';
import { EtcdWorld, lineOf, wholeSecondsOf } from './etcd-world.js';

/** `ORDER_ROUNDS=100` for the whole of it. */
const ROUNDS = Number(process.env.ORDER_ROUNDS ?? 20);
/** Rounds at a time, each with a key of its own. */
const LANES = 10;
/** The shortest that a busy machine keeps until the cut. */
const TTL_S = wholeSecondsOf(2_000) / 1_000;
const MEMBERS = { etcd: 1, 'etcd-cluster': 3 };

interface Round {
  /** Since the holder was cut off. */
  readonly toldMs: number;
  readonly deletedMs: number;
  readonly grantedMs: number;
  /** Whether the holder trusted its lock when the first answer without its key came, by its own clock: timers may be late then. */
  readonly believed: boolean;
}

describeWanted(['etcd', 'etcd-cluster'], '%s', (name) => {
  it(
    `order: a holder in a black hole is told before the server deletes its key, ${ROUNDS} of ${ROUNDS} times`,
    async () => {
      await using world = await EtcdWorld.start({ members: MEMBERS[name] });
      const rounds: Round[] = [];
      const lane = async (first: number): Promise<void> => {
        for (let round = first; round < ROUNDS; round += LANES) rounds.push(await cutOff(world, `sale-${round}`));
      };
      await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
      const leads = rounds.map(({ toldMs, deletedMs }) => deletedMs - toldMs);
      const [{ toldMs, deletedMs, grantedMs } = { toldMs: 0, deletedMs: 0, grantedMs: 0 }] = rounds;
      process.stdout.write(
        `${name}: cut off, with a TTL of ${TTL_S} s: told after ${Math.round(toldMs)} ms, deleted after ${Math.round(deletedMs)} ms, ` +
          `the next one has it after ${Math.round(grantedMs)} ms; of ${rounds.length} the shortest lead is ` +
          `${Math.round(Math.min(...leads))} ms\n`,
      );
      expect(rounds).toHaveLength(ROUNDS);
      expect(rounds.filter(({ believed }) => believed)).toEqual([]);
    },
    timeLimitOf(ROUNDS * 1_000 + 300_000),
  );
});

async function cutOff(world: EtcdWorld, key: string): Promise<Round> {
  const proxy = await FaultProxy.start(world.server);
  const alone = world.service({ endpoints: `http://127.0.0.1:${proxy.port}`, sessionTtlMs: TTL_S * 1_000 });
  const other = world.service({ sessionTtlMs: TTL_S * 1_000 });
  try {
    const lock = await alone.acquire(key);
    const told = aborted(lock.signal);
    const next = other.acquire(key, { waitMs: 30_000 });
    const [place] = await lineOf(world, key, 2, 20_000);
    proxy.pause();
    const cutOffAt = performance.now();
    const deleted = deletionOf(world, key, place?.key ?? '').then((at) => ({ at, believed: lock.isHeld }));
    const present = await next;
    const grantedAt = performance.now();
    expect(lock.isHeld).toBe(false);
    expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
    await present.release();
    const [toldAt, { at: deletedAt, believed }] = [await told, await deleted];
    return { toldMs: toldAt - cutOffAt, deletedMs: deletedAt - cutOffAt, grantedMs: grantedAt - cutOffAt, believed };
  } finally {
    proxy.resume();
    await proxy.close();
  }
}

/** When the first answer without it came. */
async function deletionOf(world: EtcdWorld, key: string, name: string): Promise<number> {
  for (;;) {
    const places = await world.places(key);
    if (!places.some((place) => place.key === name)) return performance.now();
  }
}
