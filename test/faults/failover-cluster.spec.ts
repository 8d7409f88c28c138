import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { wantedOf } from '../backends/describe-backend.js';
import { RedisCluster } from '../servers/redis-cluster.js';
import type { RedisServer } from '../servers/redis-server.js';
import { type FailoverServers, failOver } from './failover.js';

for (const name of wantedOf(['redis-cluster'])) {
  describe(`${name}: a failover of one shard under load`, () => {
    let cluster: RedisCluster;
    let servers: FailoverServers;
    beforeAll(async () => {
      cluster = await RedisCluster.start();
      const connection = { backend: 'redis', mode: 'queue', cluster: cluster.addresses } as const;
      servers = { name, connection, masterOf: (key) => cluster.masterOf(`lock:{${key}}`) };
    });
    afterAll(() => cluster.stop());

    /** A key that this server has. */
    async function keyOn(server: RedisServer | undefined, what: string): Promise<string> {
      for (let i = 0; ; i += 1) if ((await servers.masterOf(`${what}-${i}`)) === server) return `${what}-${i}`;
    }

    it.each([
      ['killed', 0],
      ['frozen, then thawed', 1],
    ] as const)(
      'R1: master of the key %s: waiters get in on its replica, and no write of a former holder is accepted',
      async (fault, shard) => {
        const victim = cluster.servers[shard];
        const hot = await keyOn(victim, 'hot');
        const stale = await keyOn(victim, 'stale');
        const elsewhere = await keyOn(cluster.servers[2], 'elsewhere');
        await failOver(servers, { hot, stale, elsewhere }, fault);
        expect(await servers.masterOf(hot)).toBe(cluster.servers[shard + 3]);
      },
      60_000,
    );
  });
}
