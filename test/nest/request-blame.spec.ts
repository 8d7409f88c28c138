import { Body, Controller, Get, Injectable, Post } from '@nestjs/common';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { application, listen } from './apps.js';
import { KeptLog } from './kept-log.js';

describe('who is to blame for a key that cannot be', () => {
  @Injectable()
  class Accounts {
    @Locked('account_:id')
    async open(id?: string): Promise<unknown> {
      return id;
    }
  }

  @Controller()
  class Sales {
    constructor(private readonly accounts: Accounts) {}
    @Get('service')
    @Locked('sale')
    service(): Promise<unknown> {
      return this.accounts.open();
    }
    @Post('handler')
    @Locked('sale_:sku')
    async handler(@Body('sku') _sku?: string): Promise<void> {}
    @Post('function')
    @Locked((sku?: string) => sku ?? '')
    async function(@Body('sku') _sku?: string): Promise<void> {}
  }

  it('is our own code when it called a service, and the request when it named nothing to its handler', async () => {
    const log = new KeptLog();
    const imports = [DistributedLockModule.forRoot({ backend: memory(), defaults: { waitMs: 0 } })];
    const app = await application({ imports, controllers: [Sales], providers: [Accounts] }, { logger: log });
    const url = await listen(app);
    expect((await fetch(`${url}/service`)).status).toBe(500);
    expect(log.lines).toEqual([expect.stringMatching(/^error :id in "account_:id" \(Accounts\.open\) is undefined/)]);
    log.lines.length = 0;
    expect((await fetch(`${url}/handler`, { method: 'POST' })).status).toBe(400);
    expect((await fetch(`${url}/function`, { method: 'POST' })).status).toBe(400);
    expect(log.lines).toEqual([
      expect.stringMatching(/^warn :sku in "sale_:sku"/),
      expect.stringMatching(/^warn .*must not be empty/),
    ]);
    log.lines.length = 0;
    const held = await app.get(LockService).acquire('sale');
    expect((await fetch(`${url}/service`)).status).toBe(423);
    expect(log.lines).toEqual([expect.stringMatching(/^debug "sale" is held by/)]);
    await held.release();
  });
});
