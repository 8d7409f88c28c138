import type { LockBackend } from 'nestjs-distributed-lock/core';
import { atLeastMs, contend as contendOn, describeWanted, eventually, SLACK_MS } from '../../support/index.js';
import { RedlockWorld } from './redlock-world.js';

const CONTENDERS = 50;
const ROUNDS = 5;
const LONG_TTL_MS = 20_000;

describeWanted(['redlock'], '%s and split votes', () => {
  it.each([
    { masters: 5, down: 0 },
    { masters: 5, down: 2 },
    { masters: 4, down: 0 },
    { masters: 2, down: 0 },
  ])(
    `R6: ${CONTENDERS} contenders at once, with $down of $masters nodes down: one has the lease soon, and then the others`,
    async ({ masters, down }) => {
      await using world = await RedlockWorld.start(masters);
      const backends = Array.from({ length: 10 }, () => world.backend());
      await Promise.all(backends.map((backend, place) => contend(backend, `warm-up-${place}`)));
      await Promise.all(world.servers.slice(0, down).map((server) => server.kill()));
      const firstMs: number[] = [];
      let splits = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const asked = await asks(world, down);
        const since = performance.now();
        const contenders = Array.from({ length: CONTENDERS }, (_, place) =>
          contend(backends[place % backends.length] ?? world.backend(), `key-${round}`),
        );
        firstMs.push((await Promise.race(contenders)) - since);
        await Promise.all(contenders);
        splits += ((await asks(world, down)) - asked) / (masters - down) / CONTENDERS;
      }
      await Promise.all(world.servers.slice(0, down).map((server) => server.restart({ empty: true })));
      const worst = Math.max(...firstMs);
      process.stdout.write(
        `  ${CONTENDERS} contenders, ${down} of ${masters} nodes down: first grant within ${worst.toFixed(0)} ms in ${ROUNDS} rounds, ` +
          `${(splits / ROUNDS).toFixed(1)} requests to each node for each of them\n`,
      );
    },
  );

  it('R6: two contenders, again and again, on four nodes: a vote that is split is decided in a few rounds', async () => {
    await using world = await RedlockWorld.start(4);
    const backends = [world.backend(), world.backend()];
    await Promise.all(backends.map((backend, place) => contend(backend, `warm-up-${place}`)));
    const took: number[] = [];
    for (let round = 0; round < 50; round += 1) {
      const since = performance.now();
      const contenders = backends.map((backend) => contend(backend, `key-${round}`));
      took.push((await Promise.race(contenders)) - since);
      await Promise.all(contenders);
    }
    const sorted = took.toSorted((a, b) => a - b);
    process.stdout.write(
      `  2 contenders on 4 nodes: first grant p50 ${sorted[25]?.toFixed(1)} ms, most ${sorted.at(-1)?.toFixed(1)} ms\n`,
    );
    expect(took).toHaveLength(50);
  });

  it('R6: votes that are not enough are given back before the next try', async () => {
    await using world = await RedlockWorld.start(5);
    const backend = world.backend();
    await contend(backend, 'warm-up');
    await world.occupy('key', 'somebody', [0, 1]);
    await world.occupy('key', 'another', [2]);
    await expect(attempt(backend, 'key')).resolves.toBeNull();
    await eventually(async () =>
      expect(await world.owners('key')).toEqual(['somebody', 'somebody', 'another', null, null]),
    );
  });

  it('R6: the holder that is named is the one with most votes, and the wait is until a quorum is free', async () => {
    await using world = await RedlockWorld.start(5);
    const backend = world.backend();
    await contend(backend, 'warm-up');
    await world.occupy('key', 'few', [0], LONG_TTL_MS);
    const holders: unknown[] = [];
    const ttlMs = atLeastMs(1_000);
    const since = performance.now();
    await world.occupy('key', 'most', [1, 2, 3], ttlMs);
    const lease = await attempt(backend, 'key', 10_000, (by) => holders.push(by));
    expect(lease).not.toBeNull();
    expect(performance.now() - since).toBeGreaterThanOrEqual(ttlMs);
    expect(performance.now() - since).toTakeLessThan(ttlMs + 1_000 + SLACK_MS);
    expect(holders[0]).toMatchObject({ label: 'most' });
    await lease?.release();
  });
});

type BlockedBy = NonNullable<Parameters<LockBackend['acquire']>[1]['onBlocked']>;

function attempt(backend: LockBackend, key: string, waitMs = 0, onBlocked: BlockedBy = () => undefined) {
  return contendOn(backend, key, { ttlMs: LONG_TTL_MS, waitMs, onBlocked });
}

/** Takes the key and gives it back; resolves to when it had it. */
async function contend(backend: LockBackend, key: string): Promise<number> {
  const lease = await attempt(backend, key, 60_000);
  if (!lease) throw new Error(`nobody had ${key} for a minute`);
  const at = performance.now();
  await lease.release();
  return at;
}

/** Requests to all nodes together but for the first ones, which are down. */
async function asks({ servers }: RedlockWorld, down: number): Promise<number> {
  const stats = await Promise.all(servers.slice(down).map((server) => server.commandStats()));
  return stats.reduce((sum, commands) => sum + (commands.get('evalsha') ?? 0), 0);
}
