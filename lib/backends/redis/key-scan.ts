import type { RedisServers } from './connection/redis-servers.js';
import { asList, keyIn, leaseKeyOf } from './scripts/redis-values.js';

/** How many names a server looks at for each page, which takes it less than a millisecond. */
const NAMES_A_PAGE = 1_000;

/** The keys with a lease that begin with `beginning`. One that comes or goes meanwhile may be missing, or come twice. */
export async function* scanKeys(
  servers: RedisServers,
  prefix: string,
  beginning: string,
): AsyncGenerator<readonly string[]> {
  const [before, from] = [`${servers.keyPrefix}${prefix}:{`, servers.keyPrefix + leaseKeyOf(prefix, beginning)];
  const pattern = `${from.slice(0, -1).replace(/[\\*?[\]^]/gu, String.raw`\$&`)}*}`;
  for (const shard of await servers.shards()) {
    let cursor: unknown = 0;
    do {
      const page = ['SCAN', String(cursor), 'MATCH', pattern, 'COUNT', NAMES_A_PAGE] as const;
      const [next, names] = await shard.ask('', { requests: [page], read: ([reply]) => asList(reply) });
      yield asList(names).map((name) => keyIn(String(name).slice(before.length, -1)));
      cursor = next;
    } while (Number(cursor) !== 0);
  }
}
