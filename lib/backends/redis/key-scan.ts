import type { RedisServers } from './connection/redis-servers.js';
import { asList, leaseKeyOf, unescapeKey } from './scripts/redis-values.js';

/** Number of names that the server checks for one page, which takes it less than a millisecond. */
const NAMES_PER_PAGE = 1_000;

/** Returns the keys that have a lease and begin with `keyPrefix`. A key that changes meanwhile may be missing or come twice. */
export async function* scanKeys(
  servers: RedisServers,
  prefix: string,
  keyPrefix: string,
): AsyncGenerator<readonly string[]> {
  const keyStart = `${servers.keyPrefix}${prefix}:{`.length;
  const nameStart = (servers.keyPrefix + leaseKeyOf(prefix, keyPrefix)).slice(0, -1);
  const pattern = `${nameStart.replace(/[\\*?[\]^]/gu, String.raw`\$&`)}*}`;
  for (const shard of await servers.loadShards()) {
    let cursor: unknown = 0;
    do {
      const command = ['SCAN', String(cursor), 'MATCH', pattern, 'COUNT', NAMES_PER_PAGE] as const;
      const [nextCursor, names] = await shard.send('', { commands: [command], read: ([reply]) => asList(reply) });
      yield asList(names).map((name) => unescapeKey(String(name).slice(keyStart, -1)));
      cursor = nextCursor;
    } while (Number(cursor) !== 0);
  }
}
