import type { RedisServers } from './connection/redis-servers.js';
import { asList, leaseKeyOf, unescapeKey } from './scripts/redis-values.js';

/** Number of keys that a server checks in less than a millisecond. */
const KEYS_PER_PAGE = 1_000;

/**
 * Yields pages of locked keys. A key that changes during the scan may be missing or come twice.
 * @param prefix the backend's option `prefix`
 * @param searchedPrefix start of the locked keys to find
 */
export async function* scanKeys(
  servers: RedisServers,
  prefix: string,
  searchedPrefix: string,
): AsyncGenerator<readonly string[]> {
  const keyOffset = `${servers.keyPrefix}${prefix}:{`.length;
  const leaseKeyStart = (servers.keyPrefix + leaseKeyOf(prefix, searchedPrefix)).slice(0, -1);
  const pattern = `${leaseKeyStart.replace(/[\\*?[\]^]/gu, String.raw`\$&`)}*}`;
  for (const shard of await servers.loadShards()) {
    let cursor: unknown = 0;
    do {
      const command = ['SCAN', String(cursor), 'MATCH', pattern, 'COUNT', KEYS_PER_PAGE] as const;
      const [nextCursor, leaseKeys] = await shard.send('', { commands: [command], read: ([reply]) => asList(reply) });
      yield asList(leaseKeys).map((leaseKey) => unescapeKey(String(leaseKey).slice(keyOffset, -1)));
      cursor = nextCursor;
    } while (Number(cursor) !== 0);
  }
}
