import { failureOf } from '../../conformance/contract.js';
import { describeServers } from './sql-world.js';

const STRATEGIES = ['lease', 'row', 'session'] as const;

/** Longer than one wait in the database's own line. */
const WAIT_MS = 2_500;

describeServers('the log of a server', (world) => {
  it.each(STRATEGIES)('has no error for a lock that is refused or waited for in vain: %s', async (strategy) => {
    const services = Array.from({ length: 4 }, () => world.service({ strategy, synchronize: false }));
    for (const service of services) await (await service.acquire('warm-up')).release();
    const before = world.log.length;
    const [holder, ...others] = services;
    const lock = await holder?.acquire('held', { ttlMs: 20_000 });
    for (const other of others) await expect(other.tryAcquire('held')).resolves.toBeNull();
    const waiting = others.map((other) => failureOf(other.acquire('held', { waitMs: WAIT_MS })));
    const refusals = await Promise.all(waiting);
    expect(refusals).toEqual(others.map(() => expect.objectContaining({ code: 'LOCK_TIMEOUT' })));
    await lock?.release();
    // A key that several ask for at once has no row yet.
    for (let round = 0; round < 20; round += 1) {
      const asking = services.map((service) => service.tryAcquire(`new-${round}`));
      for (const granted of await Promise.all(asking)) await granted?.release();
    }
    const written = world.log.slice(before).split('\n');
    expect(written.filter((line) => /ERROR|FATAL/u.test(line))).toEqual([]);
  });
});
