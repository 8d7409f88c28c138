import { eventually } from '../../support/eventually.js';
import { MemcachedWorld } from './memcached-world.js';

describe('a line of claims on memcached', () => {
  it('has a token above those of holders who came and went while a newcomer made up its mind', async () => {
    await using world = await MemcachedWorld.start();
    const { proxy, servers } = await world.proxy();
    const [slow, quick] = [world.service({ servers, requestTimeoutMs: 20_000 }), world.service()];
    await slow.withLock('other', () => undefined, { limit: 1 });
    await quick.withLock('k', () => undefined);
    const counter = (): Promise<string> => world.server.ask('get lock:f:k');
    const before = await counter();
    // The newcomer has read that the key is free, and its next request has to wait for the reply.
    const stopListening = proxy.onRequest((chunk) => chunk.includes('lock:l:k') && proxy.pause('down'));
    const permit = slow.acquire('k', { limit: 2, waitMs: 10_000 });
    await eventually(async () => expect(await counter()).not.toBe(before));
    const between = await quick.acquire('k');
    await between.release();
    stopListening();
    proxy.resume();
    const lock = await permit;
    expect(lock.fencingToken).toBeGreaterThan(between.fencingToken);
    await lock.release();
  });
});
