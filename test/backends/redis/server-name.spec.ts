import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';

describe('a server with several certificates', () => {
  const asked: string[] = [];
  let server: Server;
  let port: number;

  beforeEach(async () => {
    asked.length = 0;
    server = createServer({
      SNICallback: (name, answer) => {
        asked.push(name);
        answer(new Error('no such name'));
      },
    });
    server.on('tlsClientError', () => undefined);
    server.listen(0);
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(() => {
    server.close();
  });

  const places: readonly [string, (at: number) => RedisOptions][] = [
    ['a URL', (at) => ({ url: `rediss://localhost:${at}` })],
    ['a cluster', (at) => ({ cluster: [{ host: 'localhost', port: at }], tls: true })],
  ];

  it.each(places)('is told which one to show: %s', async (_place, optionsAt) => {
    const service = new LockService(redis(optionsAt(port)));
    try {
      await expect(service.tryAcquire('key')).rejects.toThrow();
      await eventually(() => expect(asked).toContain('localhost'));
    } finally {
      await service.close();
    }
  });
});
