import { LockService } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { failureOf } from '../../conformance/contract.js';
import { systemClock } from '../../../lib/core/time/timers.js';
import { describeServers } from './sql-world.js';

const CONNECT_MS = 2_500;

/** As a serverless database takes it that is started by its first connection. */
describeServers('a database that takes longer than two seconds to connect', (world, type) => {
  const name = type === 'postgres' ? 'connectTimeoutMS' : 'connectTimeout';

  it.each(['lease', 'row'] as const)('has as long as the data source gives it: %s', async (strategy) => {
    const options = { type, url: world.proxiedUrl, [name]: 30_000 };
    const service = new LockService(typeorm({ dataSource: { options }, strategy }));
    world.proxy.pause();
    const slow = systemClock.schedule(CONNECT_MS, () => world.proxy.resume());
    await (await service.acquire('k', { waitMs: 0 })).release();
    slow.cancel();
    await service.close();
  });

  it.each(['lease', 'row'] as const)('else fails with the name of the option: %s', async (strategy) => {
    const service = world.service({ url: world.proxiedUrl, strategy, connectTimeoutMs: 200 });
    world.proxy.pause();
    const error = await failureOf(service.acquire('k', { waitMs: 0 }));
    expect(String(error)).toContain('the database accepted no connection in time (connectTimeoutMs: 200)');
  });
});
