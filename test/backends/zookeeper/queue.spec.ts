import type { ZooKeeperMode } from 'nestjs-distributed-lock/zookeeper';
import { describeWanted, eventually, spawnChild } from '../../support/index.js';
import type { ContendersApi } from './contenders-child.js';
import { win, ZookeeperWorld } from './zookeeper-world.js';

const PROCESSES = 4;
const CONTENDERS = 50;
const ALL = PROCESSES * CONTENDERS;
const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];
describeWanted(['zookeeper'], '%s: the queue', () => {
  // Longer than a test, so that no life sign falls into it: from the first one on a holder watches its own node too.
  const world = ZookeeperWorld.shared({ sessionTtlMs: 60_000 });

  it.each(MODES)(
    'no herd: of 200 contenders in 4 processes one release wakes 1 in sequential, 200 in simple: %s',
    async (mode) => {
      const connectString = world.server.address;
      const key = world.key();
      const lease = await win(world.backend({ mode }), key);
      const file = new URL('./contenders-child.ts', import.meta.url);
      const children = await Promise.all(Array.from({ length: PROCESSES }, () => spawnChild<ContendersApi>(file)));
      try {
        await Promise.all(
          children.map((child) => child.call('contend', { connectString, mode, key, count: CONTENDERS })),
        );
        const fired = (): Promise<number> => world.server.metric('zk_sum_node_deleted_watch_count');
        const before = await fired();
        expect(await world.server.metric('zk_watch_count')).toBe(ALL);
        await lease.release();
        const granted = async (): Promise<number> =>
          (await Promise.all(children.map((child) => child.call('granted')))).reduce((sum, count) => sum + count);
        await eventually(async () => expect(await granted()).toBe(1));
        expect((await fired()) - before).toBe(mode === 'sequential' ? 1 : ALL);
        if (mode === 'simple') return;
        await Promise.all(children.map((child) => child.call('releaseAll')));
        await eventually(async () => expect(await granted()).toBe(ALL), { withinMs: 20_000 });
        expect((await fired()) - before).toBe(ALL);
      } finally {
        await Promise.all(children.map((child) => child.kill()));
      }
    },
  );

  it('first come, first served, 1,000 of 1,000, and tokens grow, also after the parent was removed and made again', async () => {
    const key = world.key();
    const backends = Array.from({ length: 5 }, () => world.backend());
    const tokens: bigint[] = [];
    for (let round = 0; round < 4; round += 1) {
      const first = await win(world.backend(), key);
      const inLine: Promise<void>[] = [];
      // The czxid of a node is the order of its creation.
      const waits = Array.from({ length: 249 }, async (_, place) => {
        let onBlocked: () => void = () => undefined;
        inLine.push(new Promise((resolve) => (onBlocked = resolve)));
        const lease = await win(backends[place % 5] ?? world.backend(), key, {
          waitMs: 60_000,
          onBlocked,
        });
        tokens.push(lease.fencingToken);
        await lease.release();
      });
      await Promise.all(inLine);
      tokens.push(first.fencingToken);
      await first.release();
      await Promise.all(waits);
      await eventually(async () => expect(await world.operator.read(`/locks/${key}`)).toBeNull());
    }
    expect(tokens).toHaveLength(1_000);
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(1_000);
  });
});
