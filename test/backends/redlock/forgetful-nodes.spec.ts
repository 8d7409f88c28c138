import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { describeWanted, Holder, RedisServer, TemporaryDirectory } from '../../support/index.js';
import { FencedResource } from '../../support/fenced-resource.js';
import { loadHistory } from '../../support/history.js';
import { checkResourceOrder, checkTokenOrder } from '../../support/history-checker.js';
import { RedlockWorld } from './redlock-world.js';

/** `REDLOCK_MS=20000` for the whole of it. */
const RUN_MS = Number(process.env.REDLOCK_MS ?? 4_000);
/** The least that has to happen. A busy machine takes several runs for it, and all of them are judged. */
const LEAST_FAULTS = RUN_MS / 1_000;
const LEAST_ACCEPTED = RUN_MS / 100;
const PROCESSES = 8;
const TTL_MS = 400;
const KEYS = ['hot', 'hot', 'warm-1', 'warm-2'];

describeWanted(['redlock'], '%s on nodes that are killed and restarted empty', () => {
  it(
    `R7, R8: tokens of ${PROCESSES} processes grow at what they protect, without an exception`,
    async () => {
      await using world = await RedlockWorld.start();
      await using protectedServer = await startServer();
      using directory = new TemporaryDirectory('forgetful-nodes');
      using resource = new FencedResource(protectedServer.url);
      const allFiles: string[] = [];
      let [allGrants, allFaults, accepted] = [0, 0, 0];
      for (let run = 1; allFaults <= LEAST_FAULTS || accepted <= LEAST_ACCEPTED; run += 1) {
        const files = Array.from({ length: PROCESSES }, (_, proc) => join(directory.path, `${run}-${proc}.jsonl`));
        const { grants, faults } = await hammerAndForget(world, files, protectedServer.url);
        allFiles.push(...files);
        const writes = (await Promise.all([...new Set(KEYS)].map((key) => resource.writes(key)))).flat();
        allGrants += grants;
        allFaults += faults;
        accepted = writes.filter((write) => write.accepted).length;
        process.stdout.write(
          `  ${allFaults} nodes killed and restarted empty in ${run * RUN_MS} ms: ${allGrants} grants, ` +
            `${accepted} writes accepted, ${writes.length - accepted} refused\n`,
        );
        expect(checkResourceOrder(writes)?.message).toBeUndefined();
        expect(checkTokenOrder(loadHistory(allFiles))?.message).toBeUndefined();
      }
    },
    RUN_MS + 300_000,
  );
});

async function hammerAndForget(
  world: RedlockWorld,
  files: readonly string[],
  resource: string,
): Promise<{ readonly grants: number; readonly faults: number }> {
  const { urls } = world;
  const holders = await Promise.all(files.map(() => Holder.start({ backend: 'redlock', urls })));
  const end = new AbortController();
  const how = { keys: KEYS, ms: RUN_MS, callers: 2, ttlMs: TTL_MS, resource };
  try {
    const runs = holders.map((holder, proc) =>
      holder.child.call('hammer', { ...how, history: files[proc] ?? '', proc: `p${proc}` }),
    );
    const faults = forgetAtRandom(world, end.signal);
    const grants = await Promise.all(runs).finally(() => end.abort());
    return { grants: grants.reduce((sum, count) => sum + count, 0), faults: await faults };
  } finally {
    await Promise.all(holders.map((holder) => holder.kill()));
  }
}

/** One node or two at a time, and now and then all of them; resolves to how many. */
async function forgetAtRandom(world: RedlockWorld, end: AbortSignal): Promise<number> {
  let faults = 0;
  while (!end.aborted) {
    await new Promise((resolve) => setTimeout(resolve, randomInt(200, 800)));
    const victims = randomInt(6) === 0 ? world.servers.keys() : [1, 2].map(() => randomInt(world.servers.length));
    const restarts = [...new Set(victims)].map(
      (victim) => world.servers[victim]?.restart({ empty: true }) ?? noServer(),
    );
    faults += restarts.length;
    await Promise.all(restarts);
  }
  return faults;
}

async function noServer(): Promise<never> {
  throw new Error('there is no such server');
}

async function startServer(): Promise<RedisServer & AsyncDisposable> {
  const server = await RedisServer.start();
  return Object.assign(server, { [Symbol.asyncDispose]: () => server.stop() });
}
