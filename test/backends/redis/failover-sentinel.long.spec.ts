import { describeWanted } from '../../support/wanted-backends.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';
import { type FailoverServers, failOver } from '../../faults/failover.js';

describeWanted(['redis-sentinel', 'redis-sentinel-node-redis'], '%s: a failover under load', (name) => {
  let set: RedisSentinels;
  let servers: FailoverServers;
  beforeAll(async () => {
    set = await RedisSentinels.start({ replicas: 2 });
    const place = { sentinels: set.addresses, name: set.name };
    const kind = name === 'redis-sentinel' ? {} : { clientPackage: 'redis' as const };
    servers = {
      name,
      connection: { backend: 'redis', mode: 'queue', ...place, ...kind },
      masterOf: () => set.master(),
    };
  });
  afterAll(() => set.stop());

  it.each(['killed', 'frozen, then thawed'] as const)(
    'R1: master %s: waiters get in on the new one, and no write of a former holder is accepted',
    async (fault) => {
      const before = await set.master();
      await failOver(servers, { hot: `hot, ${fault}`, stale: `stale, ${fault}` }, fault);
      expect(await set.master()).not.toBe(before);
    },
  );
});
