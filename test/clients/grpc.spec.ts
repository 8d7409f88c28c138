import { join } from 'node:path';
import { credentials, loadPackageDefinition, type ServiceError, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { Controller } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { GrpcMethod, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { DistributedLockModule, type LockBackend, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { freePort } from '../servers/free-port.js';
import { closing, root } from '../nest/apps.js';

interface Order {
  readonly id: string;
}

interface Receipt {
  readonly text: string;
}

type Ask = (order: Order, callback: (error: ServiceError | null, receipt?: Receipt) => void) => void;

const PROTO = join(import.meta.dirname, 'sales.proto');

@Controller()
class Sales {
  constructor(private readonly locks: LockService) {}

  @GrpcMethod('Sales', 'Buy')
  @Locked('sale_:id', { waitMs: 0 })
  async buy({ id }: Order): Promise<Receipt> {
    return { text: `bought ${id}` };
  }

  @GrpcMethod('Sales', 'Own')
  async own({ id }: Order): Promise<Receipt> {
    return this.locks.withLock(`sale_${id}`, () => ({ text: `bought ${id}` }), { waitMs: 0 });
  }
}

describe('a client of gRPC', () => {
  async function start() {
    const url = `127.0.0.1:${await freePort()}`;
    const backend: LockBackend = memory()();
    const module = root({ imports: [DistributedLockModule.forRoot(backend)], controllers: [Sales] });
    const options = { package: 'sales', protoPath: PROTO, url };
    const app = await NestFactory.createMicroservice<MicroserviceOptions>(module, {
      transport: Transport.GRPC,
      options,
      logger: false,
    });
    closing(app);
    await app.listen();
    const { sales } = loadPackageDefinition(loadSync(PROTO)) as unknown as {
      sales: { Sales: new (url: string, secrets: object) => Record<'Buy' | 'Own', Ask> & { close(): void } };
    };
    const client = new sales.Sales(url, credentials.createInsecure());
    closing({ close: async () => client.close() } as never);
    const ask = (method: 'Buy' | 'Own', id: string): Promise<unknown> =>
      new Promise((resolve) =>
        client[method]({ id }, (error, receipt) => resolve(error ? [error.code, error.details] : receipt?.text)),
      );
    return { ask, backend, locks: app.get(LockService) };
  }

  it.each(['Buy', 'Own'] as const)(
    'gets a status of gRPC for a busy key and a backend that is down, by %s',
    async (method) => {
      const { ask, backend, locks } = await start();
      expect(await ask(method, 'a1')).toBe('bought a1');
      const held = await locks.acquire('sale_a1');
      expect(await ask(method, 'a1')).toEqual([status.ABORTED, 'Locked by another request, try again later']);
      await held.release();
      backend.acquire = () => Promise.reject(new Error('redis://:password@host'));
      expect(await ask(method, 'a1')).toEqual([status.UNAVAILABLE, 'Locking is unavailable, try again later']);
    },
  );

  it('gets INVALID_ARGUMENT for a message that names no lock', async () => {
    const { ask } = await start();
    const message = 'What to lock is missing from the request, or invalid';
    expect(await ask('Buy', '')).toEqual([status.INVALID_ARGUMENT, message]);
  });
});
