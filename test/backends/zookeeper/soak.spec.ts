import type { LockService } from 'nestjs-distributed-lock/core';
import { eventually, describeWanted } from '../../support/index.js';
import { liveBytes } from '../../support/live-bytes.js';
import { ZookeeperWorld } from './zookeeper-world.js';

/** `SOAK_CYCLES=50000` for the whole of it. */
const CYCLES = Number(process.env.SOAK_CYCLES ?? 1_500);
const WARM_UP_CYCLES = 1_000;
const KEYS = 500;
/** The server is busy for a moment, removing the parents. */
const PATIENCE = { withinMs: 60_000, everyMs: 100 };
const WORKERS = 50;
/** Compiled code, and what the runtime keeps of its own: no matter how long it goes on. */
const NOISE_BYTES = 3_000_000;

describeWanted(['zookeeper'], '%s:', () => {
  it(
    `after ${CYCLES} locks over ${KEYS} keys there is no node left, and no more watches and memory than before`,
    async () => {
      const world = await ZookeeperWorld.start({ sessionTtlMs: 30_000 });
      try {
        // Two sessions, so that they meet on the server.
        const services = [world.service(), world.service()];
        const metric = (what: string): Promise<number> => eventually(() => world.server.metric(what), PATIENCE);
        // And the root.
        const nodesBefore = (await metric('zk_znode_count')) + 1;
        await cycles(services, WARM_UP_CYCLES);
        const bytesBefore = liveBytes();
        const startedAt = performance.now();
        await cycles(services, CYCLES);
        const tookMs = performance.now() - startedAt;
        const grownBytes = liveBytes() - bytesBefore;
        const watchesLeft = await metric('zk_watch_count');
        await eventually(async () => expect(await metric('zk_znode_count')).toBe(nodesBefore), PATIENCE);
        process.stdout.write(
          `  ${CYCLES} cycles over ${KEYS} keys in ${(tookMs / 1_000).toFixed(1)} s: no node left, ` +
            `${watchesLeft} watches, and ${grownBytes} bytes more than before\n`,
        );
        expect(watchesLeft).toBe(0);
        expect(grownBytes).toBeLessThan(NOISE_BYTES);
      } finally {
        await world.stop();
      }
    },
    CYCLES * 40 + 300_000,
  );
});

async function cycles(services: readonly LockService[], count: number): Promise<void> {
  let begun = 0;
  const work = async (): Promise<void> => {
    while (begun < count) {
      const cycle = begun;
      begun += 1;
      // Neighbours in time want the same key, each by the other service.
      const key = `soak-${Math.floor(cycle / 2) % KEYS}`;
      await services[cycle % services.length]?.withLock(key, () => undefined, { waitMs: 60_000 });
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
}
