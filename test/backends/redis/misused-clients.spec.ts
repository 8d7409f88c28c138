import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { monitorRedis } from '../../servers/redis-monitor.js';
import { eventually, RedisServer, timeLimitOf } from '../../support/index.js';
import { describeRedis } from './redis-world.js';
import { countTrackedClients } from './tracked-locks.js';

const LONG = { ttlMs: 30_000, waitMs: 20_000 };

describeRedis('a client that an application shares with its locks', (world) => {
  const givenClient = (url = world.server.url): Redis => {
    const client = world.disconnecting(new Redis(url, { enableReadyCheck: false, retryStrategy: () => 20 }));
    client.on('error', () => undefined);
    return client;
  };

  /** Forwards to the server. After the handshake of a second connection each command gets the reply of the one before. */
  const startMixingProxy = async (): Promise<{ readonly url: string }> => {
    let connectionCount = 0;
    const server = createServer((socket) => {
      connectionCount += 1;
      const mixesUp = connectionCount > 1;
      let isHandshake = true;
      let delayedReply = Buffer.from('+stray\r\n');
      const upstream = connect(world.server.port, '127.0.0.1');
      socket.on('data', (commands) => (isHandshake &&= /hello|setinfo/iu.test(commands.toString())));
      socket.pipe(upstream);
      upstream.on('data', (reply) => {
        const isDelayed = mixesUp && !isHandshake;
        socket.write(isDelayed ? delayedReply : reply);
        if (isDelayed) delayedReply = reply;
      });
      for (const end of [socket, upstream])
        end.on('error', () => undefined).on('close', () => [socket, upstream].forEach((other) => other.destroy()));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    world.closing({ close: async () => void server.close() });
    return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };

  it('grants nothing once it gives commands the replies of others', async () => {
    const { url } = await startMixingProxy();
    const client = givenClient(url);
    const locks = world.closing(new LockService(redis({ client, tracking: 'off' })));
    await locks.withLock('warm-up', () => undefined);
    client.disconnect(true);
    await eventually(() => locks.health.status === 'down' && client.status === 'ready');
    const stranger = await world.service().acquire('key', LONG);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(locks.tryAcquire('key')).rejects.toThrow('the given client mixes up the replies');
    }
    expect(stranger.isHeld).toBe(true);
    await stranger.release();
  });

  it('is not told to stop the tracking when the listener is lost', async () => {
    const client = givenClient();
    const locks = world.closing(new LockService(redis({ client })));
    const lock = await locks.acquire('key', LONG);
    // Else the first ON, and not that for the next listener, would end the wait below.
    await eventually(async () => (await countTrackedClients(world.operator)) === 1);
    const trackingCommands: string[] = [];
    const monitor = await monitorRedis(world.server.port, ({ args: [command, subcommand, value] }) => {
      if (`${command} ${subcommand}`.toLowerCase() === 'client tracking') trackingCommands.push(String(value));
    });
    world.disconnecting(monitor);
    await world.operator.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => trackingCommands.length > 0);
    expect(trackingCommands).toEqual(trackingCommands.map(() => 'ON'));
    await lock.release();
    await locks.close();
    await eventually(() => trackingCommands.at(-1) === 'OFF');
  });

  it('loses no lock while the application has begun a MULTI, and says so', async () => {
    const client = givenClient();
    const locks = world.closing(new LockService(redis({ client, tracking: 'off' })));
    const lock = await locks.acquire('key', { ttlMs: timeLimitOf(3_000) });
    await client.call('MULTI');
    await expect(locks.tryAcquire('other')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('the application has begun a MULTI on the given client') },
    });
    await eventually(() => lock.state === 'jeopardy');
    await client.call('DISCARD');
    await eventually(() => lock.state === 'held');
    await lock.release();
  });
});

describeRedis('a server on which commands fail', (world) => {
  it('hands a key over though its user may not publish', async () => {
    await world.operator.call('ACL', 'SETUSER', 'mute', 'on', 'nopass', '~*', '&*', '+@all', '-publish');
    const url = world.server.url.replace('redis://', 'redis://mute:any@');
    const [holder, waiting] = [world.service({ url }), world.service({ url })];
    const lock = await holder.acquire('key', LONG);
    const next = waiting.acquire('key', LONG);
    await world.untilWaiting('key', 1);
    await lock.release();
    // A refused release would leave the lease of the former holder.
    await eventually(async () => expect(await world.waitersFor('key')).toBe(0), { withinMs: 1_000 });
    await (await next).release();
  });

  it('is not connected to again and again while it is read-only', async () => {
    const master = await RedisServer.start();
    try {
      const locks = world.service();
      await locks.withLock('warm-up', () => undefined);
      await world.operator.replicaof('127.0.0.1', master.port);
      const countConnections = async (): Promise<number> =>
        Number(/total_connections_received:(?<count>\d+)/u.exec(await world.operator.info('stats'))?.groups?.count);
      const before = await countConnections();
      await expect(locks.acquire('key', { waitMs: 1_500 })).rejects.toThrow('READONLY');
      expect((await countConnections()) - before).toBeLessThanOrEqual(20);
    } finally {
      await world.operator.replicaof('NO', 'ONE');
      await master.stop();
    }
  });

  it('wakes the next caller when a share has ended at its release', async () => {
    const [holder, waiting] = [world.service(), world.service()];
    const lock = await holder.acquire('key', { limit: 1, ttlMs: timeLimitOf(20_000), minHoldMs: 300 });
    const next = waiting.acquire('key', { limit: 1, ...LONG });
    await world.untilWaiting('key', 1);
    await lock.release();
    // Without a wake-up the next caller asks again after more than three seconds.
    await eventually(async () => expect(await world.waitersFor('key')).toBe(0), { withinMs: 2_000 });
    await (await next).release();
  });
});
