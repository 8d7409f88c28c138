import { isLockError } from 'nestjs-distributed-lock/core';
import { resolveMemcachedOptions } from '../../../lib/backends/memcached/options.js';
import { MemcachedServers } from '../../../lib/backends/memcached/servers.js';
import { closeAfterEach, eventually, failureOf } from '../../support/index.js';
import { MemcachedServer } from '../../servers/memcached-server.js';
import { describeProtocols } from './memcached-world.js';

describeProtocols('M7: the list of servers, %s, of a process that runs when all items are lost', (options) => {
  let [first, second]: MemcachedServer[] = [];
  const keep = closeAfterEach();

  beforeEach(async () => {
    [first, second] = await Promise.all([MemcachedServer.start(), MemcachedServer.start()]);
  });
  afterEach(() => Promise.all([first?.stop(), second?.stop()]));

  const over = (...addresses: readonly string[]): MemcachedServers =>
    keep(new MemcachedServers(resolveMemcachedOptions({ servers: addresses, ...options })));
  const both = () => over(first?.address ?? '', second?.address ?? '');
  /** Sends a request as half a minute later: it reads the clocks of the servers again. */
  const readClocks = async (servers: MemcachedServers): Promise<void> => {
    // Of fewer keys, all may belong to one of the two, whose addresses are left to chance.
    const keys = Array.from({ length: 64 }, (_, i) => `k${i}`);
    for (const node of new Set(keys.map((key) => servers.getNode(key)))) {
      await node.run(async ({ clock }) => clock.invalidate());
      await node.run(async () => undefined);
    }
  };

  it('is stored again, and refuses a process with another list', async () => {
    const running = both();
    await running.start();
    for (const server of [first, second]) await server?.ask('flush_all');
    await readClocks(running);
    await expect(failureOf(over(first?.address ?? '').start())).resolves.toMatchObject({ option: 'servers' });
  });

  it('refuses that process itself, if another has stored its own list meanwhile', async () => {
    const running = both();
    await running.start();
    for (const server of [first, second]) await server?.ask('flush_all');
    await over(first?.address ?? '').start();
    const refusal = await failureOf(readClocks(running));
    expect(isLockError(refusal, 'LOCK_CONFIGURATION')).toBe(true);
    await eventually(() =>
      expect(running.health.current).toEqual({ status: 'down', detail: expect.stringContaining('on other servers') }),
    );
    await expect(failureOf(readClocks(running))).resolves.toMatchObject({ option: 'servers' });
  });
});
