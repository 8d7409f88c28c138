import type { LockService } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually } from '../../support/index.js';
import { NODE_TIMEOUT_MS, RedlockWorld } from './redlock-world.js';

const ROUNDS = 400;

interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

describeWanted(['redlock'], '%s, with a minority that fails', () => {
  const world = RedlockWorld.shared();

  it('R5: two of five killed: no acquisition fails', async () => {
    // Who waits for a node that is gone waits for so long.
    const requestTimeoutMs = 10 * NODE_TIMEOUT_MS;
    const service = world.service({ requestTimeoutMs });
    const healthy = latenciesOf(await durations(service));
    await Promise.all(world.servers.slice(0, 2).map((server) => server.kill()));
    try {
      const without = latenciesOf(await durations(service));
      print('two of five killed', healthy, without);
      expect(without.most).toTakeLessThan(requestTimeoutMs);
    } finally {
      await Promise.all(world.servers.slice(0, 2).map((server) => server.restart({ empty: true })));
    }
  });

  it('R5: one of five frozen: no acquisition fails, and nobody waits for it once it is known', async () => {
    const requestTimeoutMs = NODE_TIMEOUT_MS / 5;
    const service = world.service({ requestTimeoutMs });
    const [healthy, without]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < 4; turn += 1) {
      healthy.push(...(await durations(service, ROUNDS / 4)));
      await world.whileFrozen([0], async () => {
        await eventually(async () => {
          await service.withLock('probe', () => undefined);
          expect(service.health.detail).toContain(`127.0.0.1:${world.servers[0]?.port} is down`);
        });
        without.push(...(await durations(service, ROUNDS / 4)));
      });
      await eventually(() => expect(service.health.detail).toBeUndefined());
    }
    print('one of five frozen', latenciesOf(healthy), latenciesOf(without));
    expect(latenciesOf(without).most).toTakeLessThan(NODE_TIMEOUT_MS);
  });

  it('R5: two of five slow: an acquisition takes no longer than the others', async () => {
    const { all, urls } = await world.proxies();
    const service = world.service({ urls, requestTimeoutMs: 10 * NODE_TIMEOUT_MS });
    await service.withLock('warm-up', () => undefined);
    const healthy = latenciesOf(await durations(service, 50, 'acquire'));
    for (const proxy of all.slice(0, 2)) proxy.delay(NODE_TIMEOUT_MS);
    const slow = latenciesOf(await durations(service, 10, 'acquire'));
    print(`two of five slow by ${NODE_TIMEOUT_MS} ms, acquire only`, healthy, slow);
    // There and back.
    expect(slow.most).toTakeLessThan(2 * NODE_TIMEOUT_MS);
  });
});

/** How long acquisitions take, one after the other, each of a key of its own. */
async function durations(service: LockService, rounds = ROUNDS, of: 'acquire' | 'both' = 'both'): Promise<number[]> {
  const took: number[] = [];
  const releases: Promise<void>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const since = performance.now();
    const lock = await service.acquire(`key-${round}`, { waitMs: 0 });
    if (of === 'both') await lock.release();
    took.push(performance.now() - since);
    if (of === 'acquire') releases.push(lock.release());
  }
  await Promise.all(releases);
  return took;
}

function latenciesOf(took: readonly number[]): Latencies {
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(Math.floor(took.length * share), took.length - 1)] ?? NaN;
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}

function print(what: string, healthy: Latencies, then: Latencies): void {
  const show = ({ p50, p99 }: Latencies): string => `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`;
  const ratios = `p50 x ${(then.p50 / healthy.p50).toFixed(2)}, p99 x ${(then.p99 / healthy.p99).toFixed(2)}`;
  process.stdout.write(`  ${what}: ${show(healthy)} before, ${show(then)} then: ${ratios}\n`);
}
