import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { askRedis, eventually, freePort, RedisServer, throughout, timeLimitOf } from '../../support/index.js';
import { ServerProcess } from '../../servers/server-process.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { describeRedis } from './redis-world.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];

describeRedis('the start of a service on Redis', (world) => {
  const started = async (options: RedisOptions): Promise<LockService> => {
    const service = world.closing(new LockService(redis(options)));
    await service.start();
    return service;
  };

  it.each(MODES)('connects, and leaves nothing on the server (%s)', async (mode) => {
    const service = await started({ url: world.server.url, mode });
    expect(service.health).toEqual({ status: 'up' });
    await expect(world.operator.keys('*')).resolves.toEqual([]);
  });

  it('shows in the health a server that is not there, and again when it is', async () => {
    const port = await freePort();
    const service = await started({ url: `redis://127.0.0.1:${port}` });
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('ECONNREFUSED') });
  });

  it('shows in the health a server that says nothing, after the time-out of a command', async () => {
    await world.server.whileFrozen(async () => {
      const service = await started({ url: world.server.url, requestTimeoutMs: 200 });
      expect(service.health).toMatchObject({
        status: 'down',
        detail: expect.stringContaining('no answer within 200 ms'),
      });
    });
  });

  it.each(MODES)('shows in the health a wrong password, and rights that are missing (%s)', async (mode) => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~other:*', '+@all');
    const urlOf = (password: string): string => world.server.url.replace('//', `//app:${password}@`);
    const stranger = await started({ url: urlOf('wrong'), mode });
    expect(stranger.health).toMatchObject({ status: 'down', detail: expect.stringContaining('WRONGPASS') });
    const guest = await started({ url: urlOf('right'), mode });
    expect(guest.health).toMatchObject({ status: 'down', detail: expect.stringContaining('NOPERM') });
  });

  it.each(MODES)(
    'shows in the health a busy server, and without a request that it is idle again (%s)',
    async (mode) => {
      await askRedis(world.server.port, 'CONFIG SET busy-reply-threshold 10');
      const script = askRedis(world.server.port, 'EVAL "while true do end" 0', timeLimitOf(60_000));
      try {
        await eventually(async () => expect(await askRedis(world.server.port, 'PING')).toMatch(/^BUSY/));
        const service = await started({ url: world.server.url, mode });
        expect(service.health).toMatchObject({ status: 'down', detail: expect.stringMatching(/BUSY|no answer/) });
        await askRedis(world.server.port, 'SCRIPT KILL');
        await eventually(() => expect(service.health.status).toBe('up'));
      } finally {
        await Promise.all([script, askRedis(world.server.port, 'SCRIPT KILL')]);
      }
    },
  );

  it('shows in the health a right that only the release needs, until it is given', async () => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>secret', '~*', '+@all', '-del');
    const url = world.server.url.replace('//', '//app:secret@');
    const service = await started({ url, mode: 'getset' });
    const states: string[] = [];
    service.backend.health.onChange(({ status }) => states.push(status));
    // Other requests, such as INFO after the first reply, are answered in this time.
    await throughout(300, () =>
      expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('NOPERM') }),
    );
    await world.operator.acl('SETUSER', 'app', '+del');
    await eventually(() => expect(service.health).toEqual({ status: 'up' }));
    expect(states).toEqual(['up']);
  });

  it.each([
    ['queue', ['LPOS', 'TIME']],
    ['plain', ['TIME']],
  ] as const)('stops for commands that the server does not have, with their names (%s)', async (mode, missing) => {
    const args = missing.flatMap((name) => ['--rename-command', name, '']);
    const server = await RedisServer.start({ args });
    try {
      const service = world.closing(new LockService(redis({ url: server.url, mode })));
      const attempt = service.start();
      await expect(attempt).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
      for (const name of missing) await expect(attempt).rejects.toThrow(name);
    } finally {
      await world.endTest();
      await server.stop();
    }
  });

  it.each([
    ['url', (port: number): RedisOptions => ({ url: `redis://127.0.0.1:${port}/99` })],
    ['host', (port: number): RedisOptions => ({ host: '127.0.0.1', port, db: 99 })],
  ])(
    'stops for a database that the server does not have, and never locks in another one (%s)',
    async (_how, options) => {
      const service = world.closing(new LockService(redis(options(world.server.port))));
      await expect(service.start()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'db' });
      await expect(service.tryAcquire('key')).rejects.toThrow('db 99');
      await expect(world.operator.keys('*')).resolves.toEqual([]);
    },
  );

  it('stops for a server without scripts, with the mode that needs none', async () => {
    const args = ['EVAL', 'EVALSHA'].flatMap((name) => ['--rename-command', name, '']);
    const server = await RedisServer.start({ args });
    try {
      const service = world.closing(new LockService(redis({ url: server.url })));
      await expect(service.start()).rejects.toThrow("mode: 'getset'");
    } finally {
      await world.endTest();
      await server.stop();
    }
  });

  it('serves where there is no INFO', async () => {
    const port = await freePort();
    const server = await ServerProcess.start({
      command: 'redis-server',
      args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--rename-command', 'INFO', ''],
      cwd: tmpdir(),
      isReady: async () => (await askRedis(port, 'PING')) === 'PONG',
    });
    try {
      const service = world.closing(new LockService(redis({ url: `redis://127.0.0.1:${port}` })));
      await service.start();
      expect(service.health).toEqual({ status: 'up' });
      await expect(service.withLock('key', () => 'in', { waitMs: 0 })).resolves.toBe('in');
    } finally {
      await world.endTest();
      await server.kill();
    }
  });

  it('connects a given client that was to connect when it is first used', async () => {
    const client = world.disconnecting(new Redis(world.server.url, { lazyConnect: true }));
    const service = await started({ client });
    expect(service.health).toEqual({ status: 'up' });
  });

  it('finds the masters of a cluster, or shows in the health that nobody answers', async () => {
    const cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
    try {
      expect((await started({ cluster: cluster.addresses })).health).toMatchObject({ status: 'up' });
    } finally {
      await cluster.stop();
    }
    const lost = await started({ cluster: cluster.addresses });
    await eventually(() =>
      expect(lost.health).toMatchObject({
        status: 'down',
        detail: expect.stringContaining('no node of the cluster answers'),
      }),
    );
  });
});
