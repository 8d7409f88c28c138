import { request } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Controller, Get, Injectable, type MessageEvent, Param, Req, Sse } from '@nestjs/common';
import {
  CurrentLock,
  currentLock,
  DistributedLockModule,
  Locked,
  type LockHandle,
  LockService,
} from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { EMPTY, firstValueFrom, lastValueFrom, merge, Observable, of, Subject, tap, toArray } from 'rxjs';
import { createLockedStream } from '../../lib/nest/locked/locked-stream.js';
import { eventually } from '../support/eventually.js';
import { atLeastMs } from '../support/machine.js';
import { context, listening, inMemory, providing } from './apps.js';
import { Crossing, Deferred } from './crossing.js';

let crossing = new Crossing();
let source = new Subject<string>();
let subscriptions = 0;

afterEach(() => {
  crossing = new Crossing();
  source = new Subject<string>();
  subscriptions = 0;
});

@Injectable()
class Ticker {
  @Locked('ticks_:id')
  ticks(id: string, @CurrentLock() lock?: LockHandle): Observable<string> {
    return new Observable((subscriber) => {
      subscriptions += 1;
      subscriber.next(`${id} ${lock?.state} ${lock === currentLock()}`);
      return source.subscribe(subscriber);
    });
  }

  @Locked('ticks_:id')
  untyped(id: string) {
    return of(id);
  }

  @Locked('busy', { waitMs: 0, onBusy: ({ args }) => of(`${String(args[0])} later`) })
  busy(id: string): Observable<string> {
    return source.asObservable().pipe((ticks) => (id === '' ? of('') : ticks));
  }

  @Locked('skipped', { onBusy: 'skip' })
  skipped(): Observable<string> {
    return source;
  }

  @Locked('failing')
  failing(): Observable<string> {
    throw new Error('before the first value');
  }
}

async function ticker(): Promise<{ ticker: Ticker; service: LockService }> {
  const app = await providing(crossing, Ticker);
  return { ticker: app.get(Ticker), service: app.get(LockService) };
}

async function isFree(service: LockService, key: string): Promise<boolean> {
  const lock = await service.tryAcquire(key);
  await lock?.release();
  return lock !== null;
}

describe('@Locked on a method that returns an Observable', () => {
  it('locks when it is subscribed to, until it completes', async () => {
    const { ticker: sale, service } = await ticker();
    const ticks = sale.ticks('1');
    expect([crossing.keys, subscriptions]).toEqual([[], 0]);
    const seen: string[] = [];
    const done = new Deferred();
    let freeWhenDone: boolean | undefined;
    ticks.subscribe({
      next: (tick) => seen.push(tick),
      complete: () => {
        freeWhenDone = service.inspect().length === 0;
        done.resolve();
      },
    });
    await eventually(() => subscriptions === 1);
    expect(await isFree(service, 'ticks_1')).toBe(false);
    source.next('tick');
    source.complete();
    await done.promise;
    expect(seen).toEqual(['1 held true', 'tick']);
    expect(freeWhenDone).toBe(true);
  });

  it('has the second subscriber wait for the first', async () => {
    const { ticker: sale } = await ticker();
    const ticks = sale.ticks('1');
    const first = ticks.subscribe();
    const second = lastValueFrom(ticks.pipe(toArray()));
    await eventually(() => subscriptions === 1);
    first.unsubscribe();
    await eventually(() => subscriptions === 2);
    source.complete();
    expect(await second).toEqual(['1 held true']);
  });

  it('releases when it fails, when it is unsubscribed and when the method throws', async () => {
    const { ticker: sale, service } = await ticker();
    const failed = lastValueFrom(sale.ticks('1'));
    await eventually(() => subscriptions === 1);
    source.error(new Error('out of stock'));
    await expect(failed).rejects.toThrow('out of stock');
    expect(await isFree(service, 'ticks_1')).toBe(true);

    source = new Subject();
    const subscription = sale.ticks('1').subscribe();
    await eventually(() => subscriptions === 2);
    expect(source.observed).toBe(true);
    subscription.unsubscribe();
    expect(source.observed).toBe(false);
    await eventually(() => isFree(service, 'ticks_1'));

    await expect(lastValueFrom(sale.failing())).rejects.toThrow('before the first value');
    expect(await isFree(service, 'failing')).toBe(true);
  });

  it('leaves nothing behind when it is unsubscribed while it waits', async () => {
    const { ticker: sale, service } = await ticker();
    const held = await service.acquire('ticks_1');
    sale
      .ticks('1')
      .subscribe({ error: () => undefined })
      .unsubscribe();
    await held.release();
    await eventually(() => isFree(service, 'ticks_1'));
    expect(subscriptions).toBe(0);
  });

  it('fails with LockLostError when the lock is lost on the way', async () => {
    const store = new MemoryLeaseStore();
    const backend = new LockBackend(store);
    const module = DistributedLockModule.forRoot({ backend, defaults: { ttlMs: atLeastMs(600) } });
    const app = await context({ imports: [module], providers: [Ticker] });
    const lost = lastValueFrom(app.get(Ticker).ticks('1'));
    await eventually(() => subscriptions === 1);
    store.revoke('ticks_1');
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
    expect(source.observed).toBe(false);
  });

  it('lets no value through that comes after the lock, however late the loss is told', async () => {
    const ttlMs = atLeastMs(300);
    const module = DistributedLockModule.forRoot({ backend: memory(), defaults: { ttlMs } });
    const app = await context({ imports: [module], providers: [Ticker] });
    const seen: string[] = [];
    const lost = lastValueFrom(
      app
        .get(Ticker)
        .ticks('1')
        .pipe(tap((tick) => seen.push(tick))),
    );
    await eventually(() => subscriptions === 1);
    const blockedUntil = performance.now() + ttlMs + 10;
    while (performance.now() < blockedUntil);
    source.next('too late');
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(seen).toEqual(['1 held true']);
    expect(source.observed).toBe(false);
  });

  it('never begins where the subscriber has left between the grant and the call', async () => {
    const { ticker: sale, service } = await ticker();
    expect(await firstValueFrom(merge(sale.ticks('1'), sale.ticks('2')))).toMatch(/held true$/u);
    for (const key of ['ticks_1', 'ticks_2']) await eventually(() => isFree(service, key));
    expect(source.observed).toBe(false);
  });

  it('never begins under a lock that is lost already', async () => {
    const clock = new ManualClock();
    const store = new MemoryLeaseStore(clock);
    await using service = new LockService(store, { clock });
    const lock = await service.acquire('ticks_1', { ttlMs: 3_000 });
    store.revoke('ticks_1');
    await clock.advance(2_000);
    expect(lock.signal.aborted).toBe(true);
    const stream = createLockedStream(
      async (work) => {
        await work([lock]);
        return EMPTY;
      },
      () => of('never'),
    );
    await expect(lastValueFrom(stream)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
  });

  it('ends a source whose first value, given at once, was enough', async () => {
    const { ticker: sale, service } = await ticker();
    expect(await firstValueFrom(sale.ticks('1'))).toBe('1 held true');
    await eventually(() => isFree(service, 'ticks_1'));
    expect(source.observed).toBe(false);
  });

  it('answers for a busy key as onBusy says', async () => {
    const { ticker: sale, service } = await ticker();
    const held = [await service.acquire('busy'), await service.acquire('skipped')];
    expect(await lastValueFrom(sale.busy('7'))).toBe('7 later');
    expect(await lastValueFrom(sale.skipped().pipe(toArray()))).toEqual([]);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('holds the lock where its type does not say so', async () => {
    const { ticker: sale, service } = await ticker();
    const ticks = await (sale.untyped('1') as unknown as Promise<Observable<string>>);
    expect(await isFree(service, 'ticks_1')).toBe(false);
    expect(await lastValueFrom(ticks)).toBe('1');
    expect(await isFree(service, 'ticks_1')).toBe(true);
    await expect(lastValueFrom(ticks)).rejects.toThrow('call the method again');
  });

  it('reports a missing key through the Observable', async () => {
    const { ticker: sale } = await ticker();
    await expect(lastValueFrom(sale.ticks(''))).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' });
  });
});

describe('@Locked on a stream of events', () => {
  const [preparation, preparationBegan, clientGone] = [new Deferred(), new Deferred(), new Deferred()];

  @Controller()
  class Events {
    @Sse('plain/:id')
    @Locked('events_:id')
    plain(@Param('id') _id: string): Observable<MessageEvent> {
      return new Observable((subscriber) => source.subscribe((data) => subscriber.next({ data })));
    }

    @Locked('events_:id')
    @Sse('promised/:id')
    async promised(@Param('id') _id: string) {
      return new Observable<MessageEvent>((subscriber) => source.subscribe((data) => subscriber.next({ data })));
    }

    @Locked('events_:id')
    @Sse('prepared/:id')
    async prepared(@Param('id') _id: string, @Req() { socket }: { readonly socket: Socket }) {
      socket.once('close', () => clientGone.resolve());
      preparationBegan.resolve();
      await preparation.promise;
      return of<MessageEvent>({ data: 'tick' });
    }

    @Locked('events_:id')
    @Get('values/:id')
    values(@Param('id') id: string): Observable<string> {
      return of('first', `last of ${id}`);
    }
  }

  it.each(['plain', 'promised'])('holds the lock while a client listens, %s', async (route) => {
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Events] });
    const answering = fetch(`${url}/${route}/3`);
    await eventually(() => source.observed);
    source.next('tick');
    let received = '';
    for await (const chunk of (await answering).body ?? []) {
      received += Buffer.from(chunk).toString();
      if (received.includes('data: tick')) break;
      expect([crossing.keys, crossing.releases]).toEqual([['events_3'], 0]);
    }
    await eventually(() => crossing.releases === 1);
    expect(source.observed).toBe(false);
  });

  it('holds the lock until the method has returned its stream, though the client has gone', async () => {
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Events] });
    const client = request(`${url}/prepared/5`).on('error', () => undefined);
    client.end();
    await preparationBegan.promise;
    client.destroy();
    await clientGone.promise;
    for (let iteration = 0; iteration < 5; iteration += 1) await setImmediate();
    expect([crossing.keys, crossing.releases]).toEqual([['events_5'], 0]);
    preparation.resolve();
    await eventually(() => crossing.releases === 1);
  });

  it('answers a request with the last value', async () => {
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Events] });
    expect(await (await fetch(`${url}/values/4`)).text()).toBe('last of 4');
    expect([crossing.keys, crossing.releases]).toEqual([['events_4'], 1]);
  });
});
