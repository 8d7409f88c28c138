import { Controller, Get, type MessageEvent, Sse } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { lastValueFrom, Observable, of, toArray } from 'rxjs';
import { freePort } from '../servers/free-port.js';
import { application, closing, listen } from './apps.js';

@Controller()
class Reports {
  @Get('observable')
  @Locked('report', { onBusy: 'skip' })
  observable(): Observable<string> {
    return of('report');
  }

  @Get('promise')
  @Locked('report', { onBusy: 'skip' })
  async promise(): Promise<string | undefined> {
    return 'report';
  }

  @Sse('events')
  @Locked('report', { onBusy: 'skip' })
  events(): Observable<MessageEvent> {
    return of({ data: 'report' });
  }

  @MessagePattern('observable')
  @Locked('report', { onBusy: 'skip' })
  message(): Observable<string> {
    return of('report');
  }
}

describe('a handler that skips a busy key', () => {
  async function start() {
    const app = await application({ imports: [DistributedLockModule.forRoot(memory())], controllers: [Reports] });
    const held = await app.get(LockService).acquire('report');
    return { app, held };
  }

  it.each(['observable', 'promise'])('answers nothing over HTTP, by its type of an %s', async (path) => {
    const { app, held } = await start();
    const answer = await fetch(`${await listen(app)}/${path}`);
    expect([answer.status, await answer.text()]).toEqual([200, '']);
    await held.release();
  });

  it('ends a stream of events without an event', async () => {
    const { app, held } = await start();
    const answer = await fetch(`${await listen(app)}/events`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.not.stringContaining('data:')]);
    await held.release();
  });

  it('answers undefined to a message', async () => {
    const { app, held } = await start();
    const options = { host: '127.0.0.1', port: await freePort() };
    app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP, options });
    await app.startAllMicroservices();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing({ close: async () => client.close() } as never);
    expect(await lastValueFrom(client.send('observable', {}).pipe(toArray()))).toEqual([undefined]);
    await held.release();
  });
});
