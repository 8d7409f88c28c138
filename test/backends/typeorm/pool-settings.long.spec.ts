import { throughout } from '../../conformance/contract.js';
import { describeServers } from './sql-world.js';

const STRATEGIES = ['lease', 'row', 'session'] as const;

/** Each limits how long, or how often, a pool uses a connection. */
const LIMITS = {
  postgres: [{ maxUses: 1 }, { maxUses: 2 }, { maxUses: 3 }, { maxLifetimeSeconds: 1 }, { idleTimeoutMillis: 1 }],
  mariadb: [{ maxIdle: 0, idleTimeout: 1 }],
};

describeServers('a pool of the application that', (world, type) => {
  const cases = LIMITS[type].flatMap((extra) => STRATEGIES.map((strategy) => ({ extra, strategy })));

  it.each(cases)(
    'ends its connections early leaves those of the locks open: $extra, $strategy',
    async ({ extra, strategy }) => {
      const dataSource = { options: { type, url: world.url, extra } };
      const service = world.service({ strategy, dataSource });
      const held = await service.acquire('held');
      for (let round = 0; round < 8; round += 1) await (await service.acquire('used')).release();
      await throughout(1_200, () => expect(held.isHeld).toBe(true));
      await held.release();
      await service.close();
    },
  );
});
