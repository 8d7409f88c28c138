import { describeWanted, type RedisServer } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { type FailoverServers, failOver } from '../../faults/failover.js';

describeWanted(['redis-cluster', 'redis-cluster-node-redis'], '%s: a failover of one shard under load', (name) => {
  let cluster: RedisCluster;
  let servers: FailoverServers;
  beforeAll(async () => {
    cluster = await RedisCluster.start({ nodeTimeoutMs: 2_000 });
    const place = { cluster: cluster.addresses };
    const kind = name === 'redis-cluster' ? {} : { clientPackage: 'redis' as const };
    servers = {
      name,
      connection: { backend: 'redis', mode: 'queue', ...place, ...kind },
      masterOf: (key) => cluster.masterOf(`lock:{${key}}`),
    };
  });
  afterAll(() => cluster.stop());

  /** A key that such a server has. */
  async function keyOn(what: string, fits: (master: RedisServer) => boolean): Promise<string> {
    for (let i = 0; ; i += 1) if (fits(await servers.masterOf(`${what}-${i}`))) return `${what}-${i}`;
  }

  // The one that is killed stays away, and its shard without a replica.
  it.each(['frozen, then thawed', 'killed'] as const)(
    'R1: master of the key %s: waiters get in on its replica, and no write of a former holder is accepted',
    async (fault) => {
      const hot = `hot, ${fault}`;
      const victim = await servers.masterOf(hot);
      const stale = await keyOn('stale', (master) => master === victim);
      const elsewhere = await keyOn('elsewhere', (master) => master !== victim);
      await failOver(servers, { hot, stale, elsewhere }, fault);
      expect(await servers.masterOf(hot)).not.toBe(victim);
    },
  );
});
