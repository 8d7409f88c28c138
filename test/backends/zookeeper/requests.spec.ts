import type { ZooKeeperMode } from 'nestjs-distributed-lock/zookeeper';
import { ZookeeperServer } from '../../servers/zookeeper-server.js';
import { atLeastMs, describeWanted, eventually } from '../../support/index.js';
import { contend, win, ZookeeperWorld } from './zookeeper-world.js';

const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];

describeWanted(['zookeeper'], '%s: requests to the server', () => {
  const world = ZookeeperWorld.shared({ sessionTtlMs: 60_000 });

  /** Requests of all sessions together while `work` runs. */
  const during = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await received(world.server);
    await work();
    return (await received(world.server)) - before;
  };

  it.each(MODES)('an uncontended lock costs three, the first of its key more: %s', async (mode) => {
    const backend = world.backend({ mode });
    await (await win(backend, world.key())).release();
    const key = world.key();
    const once = async (): Promise<void> => (await win(backend, key)).release();
    // sequential: create and list fail for want of a parent, create that, create and list, delete
    expect(await during(once)).toBe(mode === 'sequential' ? 6 : 3);
    // The server may remove the empty parent between two of them, every half second: that one costs three more.
    expect(Math.min(await during(once), await during(once))).toBe(3);
    const since = performance.now();
    const requestCount = await during(() => many(100, once));
    const mostRemovals = Math.ceil((performance.now() - since) / 500) + 1;
    expect(requestCount).toBeGreaterThanOrEqual(300);
    expect(requestCount).toBeLessThanOrEqual(300 + 3 * mostRemovals);
  });

  it.each(MODES)('waiting for a lock costs two more, being refused one more: %s', async (mode) => {
    const [ours, theirs] = [world.backend({ mode }), world.backend({ mode })];
    const key = world.key();
    await (await win(theirs, key)).release();
    const lease = await win(ours, key);
    const refused = await during(() => contend(theirs, key));
    // create, list, read whose it is, delete; in simple mode create and read
    expect(refused).toBe(mode === 'sequential' ? 4 : 2);
    // A caller who does not wait is not told of the release either.
    expect(await world.server.metric('zk_watch_count')).toBe(0);
    const waited = await during(async () => {
      let onBlocked: () => void = () => undefined;
      const inLine = new Promise<void>((resolve) => (onBlocked = resolve));
      const next = win(theirs, key, { waitMs: 10_000, onBlocked });
      await inLine;
      await lease.release();
      await (await next).release();
    });
    // create, list, watch; list again; and two releases
    expect(waited).toBe(mode === 'sequential' ? 6 : 7);
  });

  it('a hundred locks held cost one life sign each beat, and one look at each node', async () => {
    const sessionTtlMs = atLeastMs(1_800);
    const beatMs = sessionTtlMs / 9;
    const service = world.service({ sessionTtlMs });
    const locks = await Promise.all(Array.from({ length: 100 }, () => service.acquire(world.key())));
    await eventually(async () => expect(await world.server.metric('zk_watch_count')).toBe(100));
    const [since, before] = [performance.now(), await received(world.server)];
    await new Promise((resolve) => setTimeout(resolve, 3 * beatMs));
    const countBeats = async (): Promise<number | false> => {
      const count = (await received(world.server)) - before;
      return count >= 2 && count;
    };
    // On a busy machine the timers are late.
    const beats = await eventually(countBeats);
    const watched = (performance.now() - since) / beatMs;
    expect(beats).toBeLessThanOrEqual((8 / 3) * watched);
    expect(locks.every(({ isHeld }) => isHeld)).toBe(true);
  });
});

async function received(server: ZookeeperServer): Promise<number> {
  const connections = (await server.ask('cons')).split('\n').filter((line) => line.includes('sid='));
  return connections.reduce((sum, line) => sum + Number(/recved=(?<count>\d+)/u.exec(line)?.groups?.['count']), 0);
}

async function many(times: number, work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i += 1) await work();
}
