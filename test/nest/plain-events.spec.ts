import {
  Controller,
  HttpException,
  Injectable,
  type MessageEvent,
  NotFoundException,
  Param,
  ParseIntPipe,
  Sse,
} from '@nestjs/common';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { map, Observable, of } from 'rxjs';
import { application, listen } from './apps.js';

@Injectable()
class Ticker {
  @Locked('ticks', { waitMs: 0 })
  ticks(): Observable<string> {
    return of('tick');
  }
  @Locked('ticks', { waitMs: 0 })
  async next(): Promise<string> {
    return 'tick';
  }
}

@Controller()
class Events {
  constructor(private readonly ticker: Ticker) {}

  @Sse('plain/:id')
  plain(@Param('id', ParseIntPipe) id: number): Observable<MessageEvent> {
    if (id === 0) throw new NotFoundException();
    return of({ data: `event ${id}` });
  }

  @Sse('ticks')
  ticks(): Observable<MessageEvent> {
    return this.ticker.ticks().pipe(map((data) => ({ data })));
  }

  @Sse('promised-ticks')
  async promisedTicks(): Promise<Observable<MessageEvent>> {
    return this.ticks();
  }

  @Sse('next')
  async next(): Promise<Observable<MessageEvent>> {
    return of({ data: await this.ticker.next() });
  }

  @Sse('broken')
  broken(): Observable<MessageEvent> {
    return new Observable((subscriber) => subscriber.error(new HttpException('out of paper', 503)));
  }
}

describe('a stream of events without a lock of its own', () => {
  async function start(): Promise<{ url: string; locks: LockService }> {
    const imports = [DistributedLockModule.forRoot(memory())];
    const app = await application({ imports, controllers: [Events], providers: [Ticker] });
    return { url: await listen(app), locks: app.get(LockService) };
  }

  it.each([
    ['plain/none', 400],
    ['plain/0', 404],
  ])('answers errors of pipes and of the handler with their status, "%s"', async (path, status) => {
    const { url } = await start();
    expect((await fetch(`${url}/${path}`)).status).toBe(status);
  });

  it('is as the handler gives it', async () => {
    const { url } = await start();
    expect(await (await fetch(`${url}/plain/7`)).text()).toContain('data: event 7');
    expect(await (await fetch(`${url}/broken`)).text()).toContain('out of paper');
  });

  it.each(['ticks', 'promised-ticks'])('tells clients of no key, "%s"', async (path) => {
    const { url, locks } = await start();
    const held = await locks.acquire('ticks');
    const received = await (await fetch(`${url}/${path}`)).text();
    expect(received).toContain('Locked by another request, try again later');
    expect(received).not.toContain('"ticks"');
    await held.release();
  });

  it('is refused as busy when what it awaits is', async () => {
    const { url, locks } = await start();
    const held = await locks.acquire('ticks');
    expect((await fetch(`${url}/next`)).status).toBe(423);
    await held.release();
  });
});
