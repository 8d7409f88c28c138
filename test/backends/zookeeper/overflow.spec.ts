import { Gate, describeWanted } from '../../support/index.js';
import { raiseSequence } from './raise-sequence.js';
import { win, ZookeeperWorld } from './zookeeper-world.js';

/** The parent is not deleted meanwhile, as it would not be with so many contenders for the key. */
const JVM = ['-Dznode.container.checkIntervalMs=600000', '-Dzookeeper.digest.enabled=false'];

describeWanted(['zookeeper'], '%s:', () => {
  it('Z8: when the server repeats the last number of the queue, the order of creation decides', async () => {
    const world = await ZookeeperWorld.start({ sessionTtlMs: 20_000 }, { jvm: JVM });
    try {
      const key = world.key();
      const backend = world.backend();
      await (await win(backend, key)).release();
      await world.server.kill();
      raiseSequence(world.server.data, `/locks/${key}`, 2 ** 31 - 3);
      await world.server.launch();
      const first = await win(backend, key, { waitMs: 10_000 });
      const served: number[] = [];
      const tokens = [first.fencingToken];
      let [inside, most] = [0, 0];
      const visit = async (place: number, { open }: Gate): Promise<void> => {
        const lease = await win(world.backend(), key, { waitMs: 20_000, onBlocked: open });
        inside += 1;
        most = Math.max(most, inside);
        served.push(place);
        tokens.push(lease.fencingToken);
        await expect(lease.renew()).resolves.toBe(true);
        inside -= 1;
        await lease.release();
      };
      const waits: Promise<void>[] = [];
      for (let place = 0; place < 7; place += 1) {
        const inLine = new Gate();
        waits.push(visit(place, inLine));
        await inLine.opened;
      }
      const names = await world.operator.children(`/locks/${key}`);
      const numbers = names.map((one) => one.slice(one.lastIndexOf(':') + 1)).toSorted();
      expect(numbers.slice(0, 4)).toEqual(['2147483645', '2147483646', '2147483647', '2147483647']);
      await first.release();
      await Promise.all(waits);
      expect(most).toBe(1);
      expect(served).toEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    } finally {
      await world.stop();
    }
  });
});
