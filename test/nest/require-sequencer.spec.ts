import { describe, expect, it } from '@jest/globals';
import { Body, Controller, Post } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DistributedLockModule, LockConfigurationError, LockService, RequireSequencer } from 'nestjs-distributed-lock';
import { TestLockBackend } from 'nestjs-distributed-lock/testing';
import { listening } from './apps.js';

interface Write {
  readonly sku: string;
}

@Controller()
class Ledger {
  @Post('any')
  @RequireSequencer('X-Lock-Sequencer')
  writeAny(): string {
    return 'written';
  }

  @Post('stock')
  @RequireSequencer('x-lock-sequencer', { key: ({ body }) => `stock_${(body as Write).sku}` })
  writeStock(@Body() { sku }: Write): string {
    return `${sku} written`;
  }
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('@RequireSequencer, %s', (_, adapter) => {
  it('lets in who holds the lock; 409 once it is over, 400 without a lock to show, 503 without an answer', async () => {
    const backend = new TestLockBackend();
    const imports = [DistributedLockModule.forRoot({ backend, namespace: 'shop' })];
    const url = await listening({ imports, controllers: [Ledger] }, adapter());
    const holder = new LockService(backend, { namespace: 'shop' });
    const post = async (path: string, sequencer?: string): Promise<number> => {
      const headers = {
        'content-type': 'application/json',
        ...(sequencer === undefined ? {} : { 'x-lock-sequencer': sequencer }),
      };
      const { status } = await fetch(`${url}/${path}`, { method: 'POST', body: '{"sku":"7"}', headers });
      return status;
    };

    const [seven, eight] = [await holder.acquire('stock_7'), await holder.acquire('stock_8')];
    expect(await post('any', seven.sequencer())).toBe(201);
    expect(await post('any', eight.sequencer())).toBe(201);
    expect(await post('stock', seven.sequencer())).toBe(201);
    expect(await post('stock', eight.sequencer())).toBe(400);
    expect(await post('any')).toBe(400);
    expect(await post('any', 'lock1.nonsense')).toBe(400);
    expect(await post('any', `${seven.sequencer()}, ${eight.sequencer()}`)).toBe(400);

    const shown = seven.sequencer();
    backend.breakDown();
    expect(await post('any', shown)).toBe(503);
    backend.repair();
    backend.revoke('shop:stock_7');
    expect(await post('any', shown)).toBe(409);
    expect(() => seven.sequencer()).toThrow('was taken away');
    await eight.release();
  });
});

it('@RequireSequencer refuses what is no name of a header where it is written', () => {
  expect(() => RequireSequencer('x lock')).toThrow(LockConfigurationError);
});
