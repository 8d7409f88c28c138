import { existsSync, readdirSync, readlinkSync } from 'node:fs';

import { itIsGoneAfterKill, stoppingAfterEach } from './describe-own-server.js';
import { askRedis, RedisServer, type RedisServerOptions, TemporaryDirectory } from '../support/index.js';

describe('RedisServer', () => {
  const start = stoppingAfterEach((options?: RedisServerOptions) => RedisServer.start(options));

  it('serves as soon as it has started, several at a time', async () => {
    const started = await Promise.all([start(), start(), start()]);
    const replies = await Promise.all(started.map(({ port }) => askRedis(port, 'PING')));
    expect(replies).toEqual(['PONG', 'PONG', 'PONG']);
    expect(new Set(started.map(({ url }) => url)).size).toBe(3);
  });

  it('does not answer while frozen, and does afterwards', async () => {
    const server = await start();
    server.freeze();
    await expect(askRedis(server.port, 'PING', 50)).rejects.toThrow('No reply to PING');
    server.thaw();
    await expect(askRedis(server.port, 'PING')).resolves.toBe('PONG');
  });

  itIsGoneAfterKill(start, (server) => askRedis(server.port, 'PING'));

  it('restarts empty on the same port', async () => {
    const server = await start({ persistent: true });
    await askRedis(server.port, 'SET tree oak');
    await server.restart({ empty: true });
    await expect(askRedis(server.port, 'EXISTS tree')).resolves.toBe('0');
  });

  it('restarts with its data when persistent', async () => {
    const server = await start({ persistent: true });
    await askRedis(server.port, 'SET tree oak');
    await server.restart({ empty: false });
    await expect(askRedis(server.port, 'GET tree')).resolves.toBe('oak');
  });

  it('refuses to promise data that it does not keep', async () => {
    const server = await start();
    await expect(server.restart({ empty: false })).rejects.toThrow('Only a persistent server keeps its data');
  });

  it('reports a port that is taken instead of taking the stranger on it for its own', async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toThrow('Address already in use');
  });

  it('passes further arguments on', async () => {
    const server = await start({ args: ['--requirepass', ''] });
    await expect(askRedis(server.port, 'PING')).resolves.toBe('PONG');
    await expect(start({ args: ['--no-such-option', '1'] })).rejects.toThrow(/Bad directive|Unresolved Configuration/u);
  });

  it('counts commands', async () => {
    const server = await start();
    await askRedis(server.port, 'SET tree oak');
    await askRedis(server.port, 'SET tree elm');
    const stats = await server.commandStats();
    expect(stats.get('set')).toBe(2);
    expect(stats.get('get')).toBeUndefined();
  });

  it('removes its own directory, and never a given one', async () => {
    using given = new TemporaryDirectory('given');
    await (await start({ dir: given.path, persistent: true })).stop();
    expect(readdirSync(given.path)).not.toEqual([]);

    const server = await start();
    const info = await askRedis(server.port, 'INFO server');
    const pid = /process_id:(?<pid>\d+)/.exec(info)?.groups?.pid ?? '';
    const own = readlinkSync(`/proc/${pid}/cwd`);
    expect(existsSync(own)).toBe(true);
    await server.stop();
    expect(existsSync(own)).toBe(false);
  });
});
