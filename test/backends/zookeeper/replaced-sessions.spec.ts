import type { LockService } from 'nestjs-distributed-lock/core';
import type { ZooKeeperMode } from 'nestjs-distributed-lock/zookeeper';
import { describeWanted, eventually } from '../../support/index.js';
import { RefusingProxy } from './refusing-proxy.js';
import { ZookeeperWorld } from './zookeeper-world.js';

/** Longer than a test: whatever the old session leaves is still there at the end. */
const SESSION_MS = 20_000;
const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];

/** Servers that open a new session for a client that asks for its own: https://github.com/ClickHouse/ClickHouse/issues/116690 */
describeWanted(['zookeeper'], '%s: a server that gives a returning client another session', () => {
  const world = ZookeeperWorld.shared({ sessionTtlMs: SESSION_MS });

  const startReplacing = async (mode: ZooKeeperMode): Promise<{ proxy: RefusingProxy; service: LockService }> => {
    const proxy = world.closing(await RefusingProxy.start(world.server));
    const service = world.service({ connectString: `127.0.0.1:${proxy.port}`, mode });
    await service.withLock(world.key(), () => undefined);
    proxy.replacesSessions = true;
    return { proxy, service };
  };
  const reconnect = async (proxy: RefusingProxy): Promise<void> => {
    proxy.reset();
    await eventually(() => proxy.replaced > 0);
    proxy.replacesSessions = false;
  };

  it.each(MODES)('has all locks of the old session lost, %s', async (mode) => {
    const { proxy, service } = await startReplacing(mode);
    const lock = await service.acquire(world.key());
    await reconnect(proxy);
    await eventually(() => !lock.isHeld);
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  });

  it.each(MODES)('gets locks that it can release for others, %s', async (mode) => {
    const { proxy, service } = await startReplacing(mode);
    await reconnect(proxy);
    const key = world.key();
    await (await service.acquire(key, { waitMs: 5_000 })).release();
    await expect(world.service({ mode }).tryAcquire(key)).resolves.not.toBeNull();
  });
});
