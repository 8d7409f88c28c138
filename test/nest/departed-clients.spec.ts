import { request } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ConsoleLogger, Controller, Param, Post } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { NestFactory } from '@nestjs/core';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { Observable, of } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { closing, listen, root } from './apps.js';

class Log extends ConsoleLogger {
  readonly lines: unknown[] = [];
  override log = (): void => undefined;
  override warn = (...line: unknown[]): void => void this.lines.push(line);
  override error = (...line: unknown[]): void => void this.lines.push(line);
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a request whose client has gone, %s', (_, adapter) => {
  const ran: string[] = [];

  @Controller()
  class Sales {
    @Post('buy/:who')
    @Locked('sale')
    async buy(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
    @Post('stream/:who')
    @Locked('sale')
    stream(@Param('who') who: string): Observable<string> {
      ran.push(who);
      return of(who);
    }
    @Post('several/:who')
    @Locked(['other', 'sale'])
    async several(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
    @Post('patient/:who')
    @Locked('sale', { outliveClient: true })
    async patient(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
  }

  afterEach(() => void ran.splice(0));

  async function start() {
    const imports = [DistributedLockModule.forRoot(memory())];
    const log = new Log();
    const module = root({ imports, controllers: [Sales] });
    const app = closing(await NestFactory.create(module, adapter(), { logger: log, forceCloseConnections: true }));
    const url = await listen(app);
    const locks = app.get(LockService);
    const waiters = (): number => locks.inspect().find(({ key }) => key === 'sale')?.waitersHere ?? 0;
    /** Goes away as soon as its request waits for the lock. */
    const leave = async (path: string): Promise<void> => {
      const before = waiters();
      const client = request(`${url}/${path}`, { method: 'POST' });
      client.on('error', () => undefined);
      client.end();
      await eventually(() => waiters() === before + 1);
      client.destroy();
    };
    return { url, locks, waiters, leave, log };
  }

  it.each(['buy', 'stream', 'several'])('does not wait any longer, and "%s" does not run', async (path) => {
    const { url, locks, waiters, leave, log } = await start();
    const held = await locks.acquire('sale');
    await leave(`${path}/gone`);
    await eventually(() => waiters() === 0);
    const next = fetch(`${url}/${path}/here`, { method: 'POST' });
    await eventually(() => waiters() === 1);
    await held.release();
    expect(await (await next).text()).toBe('here');
    expect(ran).toEqual(['here']);
    expect(log.lines).toEqual([]);
    await eventually(() => locks.inspect().length === 0);
  });

  it('goes on waiting where the option says that it outlives its client', async () => {
    const { url, locks, leave, waiters } = await start();
    const held = await locks.acquire('sale');
    await leave('patient/gone');
    await leave('buy/given-up');
    await eventually(() => waiters() === 1);
    await held.release();
    expect(await (await fetch(`${url}/patient/here`, { method: 'POST' })).text()).toBe('here');
    expect(ran).toEqual(['gone', 'here']);
  });
});
