import { lockStore } from 'nestjs-distributed-lock/nestjs-locks';
import { type Contract, SLACK_MS, spawnChild, type Suite } from '../support/index.js';
import type { RacerApi } from './racer-child.js';
import { RULES, type World } from './rules.js';

const KEYS = Array.from({ length: 50 }, (_, index) => `raced ${index}`);
/** Asked for by two processes in the name of one owner. */
const KEYS_OF_ONE = KEYS.map((key) => `${key} by one`);

/** The demands of `@nestjs/locks` on a store, on the server of a backend. */
export function lockStorePromises(suite: Suite): void {
  for (const [rule, check] of Object.entries(RULES)) suite.it(rule, (contract) => check(worldOf(contract)), 60_000);
  processes(suite);
}

function worldOf(contract: Contract): World {
  const { shortTtlMs, expiresLateMs = 0 } = contract.harness;
  return {
    store: async () => contract.closing(lockStore(await contract.backend())),
    key: () => contract.key(),
    ttlMs: Math.max(1_000, shortTtlMs),
    lateMs: expiresLateMs + SLACK_MS,
  };
}

function processes({ harness: { connection }, alone }: Suite): void {
  if (!connection) return;
  alone('lets one of two processes win each key, and the other one release it', async () => {
    const file = new URL('./racer-child.ts', import.meta.url);
    const racers = await Promise.all([spawnChild<RacerApi>(file), spawnChild<RacerApi>(file)]);
    try {
      await Promise.all(racers.map((racer) => racer.call('open', connection())));
      const race = async (keys: readonly string[], ownerOf: (index: number) => string): Promise<number[][]> => {
        const asked = racers.map((racer, index) => racer.call('acquire', { keys, owner: ownerOf(index) }));
        const answers = await Promise.all(asked);
        return keys.map((_, at) => answers.flatMap((of, index) => (of[at]?.acquired ? [index] : [])));
      };
      const winners = await race(KEYS, (index) => `racer ${index}`);
      expect(winners.filter((of) => of.length !== 1)).toEqual([]);
      const alike = await race(KEYS_OF_ONE, () => 'both');
      expect(alike.filter((of) => of.length !== 1)).toEqual([]);
      const [[first = 0] = []] = winners;
      const other = racers[1 - first];
      await expect(other?.call('release', { key: 'raced 0', owner: `racer ${1 - first}` })).resolves.toBe(false);
      await expect(other?.call('release', { key: 'raced 0', owner: `racer ${first}` })).resolves.toBe(true);
    } finally {
      await Promise.all(racers.map((racer) => racer.kill()));
    }
  });
}
