import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { describeWanted, failureOf } from '../../support/index.js';

/** AuthenticationOk, BackendKeyData, ReadyForQuery, and what a server says that is shut down at that moment. */
const GREETING_AND_END = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('K', Buffer.alloc(8, 1)),
  message('Z', Buffer.from('I')),
  message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')),
]);

describeWanted(['postgres'], 'a PostgreSQL server that ends the session in the packet of its greeting', () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(GREETING_AND_END));
  });
  beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  afterAll(() => void server.close());

  const serviceWith = (strategy: 'lease' | 'row' | 'session', extra = {}): LockService => {
    const { port } = server.address() as AddressInfo;
    const options = { type: 'postgres', url: `postgres://user@127.0.0.1:${port}/database`, extra } as const;
    return new LockService(typeorm({ dataSource: { options }, strategy, patienceMs: 300 }));
  };

  it.each(['lease', 'row', 'session'] as const)('fails the acquisition, and not the process: %s', async (strategy) => {
    await using service = serviceWith(strategy);
    await expect(failureOf(service.acquire('k', { waitMs: 300 }))).resolves.toBeInstanceOf(LockBackendError);
  });

  it.each(['lease', 'row', 'session'] as const)('leaves a check of the application in force: %s', async (strategy) => {
    const verify = (_: unknown, done: (error: Error) => void): void => done(new Error('refused by the application'));
    await using service = serviceWith(strategy, { verify });
    await expect(failureOf(service.acquire('k', { waitMs: 5_000 }))).resolves.toThrow('refused by the application');
  });
});

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
