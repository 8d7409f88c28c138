import {
  Controller,
  Get,
  Injectable,
  type MessageEvent,
  Module,
  type OnApplicationShutdown,
  Param,
  Sse,
} from '@nestjs/common';
import {
  CurrentLock,
  DistributedLockModule,
  type LockBackend,
  Locked,
  type LockHandle,
  type LockObserver,
  LockService,
  type LossReason,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { NEVER, type Observable } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { application, context, listen, providing } from './apps.js';
import { Crossing, Deferred } from './crossing.js';

/** A backend that says when it closes. */
function closing(order: string[]): LockBackend {
  const backend = memory()();
  const close = backend.close.bind(backend);
  backend.close = async () => {
    order.push('backend closed');
    await close();
  };
  return backend;
}

@Injectable()
class Sale {
  @Locked('sale')
  async sell(): Promise<string> {
    return 'sold';
  }
}

describe('the end of an application', () => {
  it('A21: serves who is inside, who waits and who comes until the server is closed, and closes the backend last', async () => {
    const order: string[] = [];
    const [inside, waiting, leave, drain] = [new Deferred(), new Deferred(), new Deferred(), new Deferred()];
    @Controller()
    class Sales {
      constructor(private readonly locks: LockService) {}

      @Get(':id')
      @Locked('sale_:id')
      async buy(@Param('id') id: string): Promise<string> {
        inside.resolve();
        await leave.promise;
        await this.locks.withLock('stock', () => order.push(`sold ${id}`));
        return id;
      }
    }
    @Injectable()
    class LoadBalancer {
      async beforeApplicationShutdown(): Promise<void> {
        await drain.promise;
      }
    }
    const observers = [{ waiting: () => waiting.resolve() }];
    const app = await application({
      imports: [DistributedLockModule.forRoot({ backend: closing(order), observers })],
      controllers: [Sales],
      providers: [LoadBalancer],
    });
    const url = await listen(app);
    const answer = (id: string): Promise<string> => fetch(`${url}/${id}`).then((response) => response.text());
    const held = answer('1');
    await inside.promise;
    const closed = app.close().then(() => order.push('app closed'));
    const waiter = answer('1');
    await waiting.promise;
    const newcomer = answer('2');
    leave.resolve();
    expect(await Promise.all([held, waiter, newcomer])).toEqual(['1', '1', '2']);
    drain.resolve();
    await closed;
    expect(order.slice(0, 3).toSorted()).toEqual(['sold 1', 'sold 1', 'sold 2']);
    expect(order.slice(3)).toEqual(['backend closed', 'app closed']);
    await expect(app.get(Sales).buy('3')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN', key: 'sale_3' });
  });

  it('sends away who waits for ever, after the grace time, so that the server can close', async () => {
    const waiting = new Deferred();
    @Controller()
    class Sales {
      @Get()
      @Locked('sale', { waitMs: Infinity })
      async buy(): Promise<void> {}
    }
    const observers = [{ waiting: () => waiting.resolve() }];
    const module = DistributedLockModule.forRoot({ backend: memory(), observers, shutdownGraceMs: 100 });
    const app = await application({ imports: [module], controllers: [Sales] });
    const url = await listen(app);
    const lock = await app.get(LockService).acquire('sale');
    const waiter = fetch(url);
    await waiting.promise;
    const closed = app.close();
    const answer = await waiter;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.json()).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await closed;
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
  });

  it.each(['stream', 'hung'])(
    'tells the work under a request that never ends (%s), after the grace time',
    async (path) => {
      const inside = new Deferred<LockHandle>();
      const told = new Deferred<LossReason>();
      const signalled = (lock?: LockHandle): void => {
        if (lock) inside.resolve(lock);
      };
      @Controller()
      class Sales {
        @Sse('stream')
        @Locked('sale')
        stream(@CurrentLock() lock?: LockHandle): Observable<MessageEvent> {
          signalled(lock);
          return NEVER;
        }

        @Get('hung')
        @Locked('sale')
        async hang(@CurrentLock() lock?: LockHandle): Promise<void> {
          signalled(lock);
          await new Promise(() => undefined);
        }
      }
      const observers: LockObserver[] = [{ lost: ({ reason }) => told.resolve(reason) }];
      const module = DistributedLockModule.forRoot({ backend: memory(), observers, shutdownGraceMs: 100 });
      const app = await application({ imports: [module], controllers: [Sales] });
      const url = await listen(app);
      const client = new AbortController();
      const answer = fetch(`${url}/${path}`, { signal: client.signal }).catch(() => undefined);
      const lock = await inside.promise;
      const closed = app.close();
      await expect(told.promise).resolves.toBe('shutdown');
      expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
      client.abort();
      await Promise.all([answer, closed]);
    },
  );

  it.each(['before', 'after'])('comes after the end of a global module that is imported %s', async (place) => {
    const order: string[] = [];
    /** As @nestjs/bullmq does: it stops taking jobs and waits for those under way in its last hook. */
    @Injectable()
    class Workers implements OnApplicationShutdown {
      readonly #ended = new Deferred();
      #job: Promise<unknown> | undefined;

      constructor(private readonly locks: LockService) {}

      async start(): Promise<void> {
        const begun = new Deferred();
        this.#job = this.locks.withLock('job', async (lock) => {
          begun.resolve();
          await this.#ended.promise;
          await this.locks.withLock('nested', () => order.push(`job ends, held: ${lock.isHeld}`));
        });
        await begun.promise;
      }

      async onApplicationShutdown(): Promise<void> {
        const job = this.#job;
        this.#job = undefined;
        this.#ended.resolve();
        await job;
        // Each application is closed once more after its test.
        if (job) await this.locks.withLock('next', () => order.push('next job ends'));
      }
    }
    @Module({ providers: [Workers] })
    class WorkersModule {}
    const locking = DistributedLockModule.forRoot(closing(order));
    const working = { module: WorkersModule, global: true };
    const app = await context({ imports: place === 'before' ? [working, locking] : [locking, working] });
    await app.get(Workers, { strict: false }).start();
    await app.close();
    expect(order).toEqual(['job ends, held: true', 'next job ends', 'backend closed']);
  });

  it('waits for work that nobody else waits for, with the locks of each of several backends', async () => {
    const order: string[] = [];
    const backends = { default: memory(), ledger: closing(order) };
    const app = await context({ imports: [DistributedLockModule.forRoot({ backends })] });
    const locks = app.get(LockService);
    const ledger = app.get<LockService>('LockService(ledger)');
    const leave = new Deferred();
    const work = locks.withLock('job', async () => {
      await leave.promise;
      await ledger.withLock('entry', () => order.push('entered'));
    });
    const closed = app.close();
    await eventually(() => expect(locks.withLock('other', () => 0)).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' }));
    leave.resolve();
    await Promise.all([work, closed]);
    expect(order).toEqual(['entered', 'backend closed']);
  });

  it('A21: takes the lock from who does not stop within the grace time', async () => {
    const app = await providing(new Crossing(), Sale);
    const quick = await context({
      imports: [DistributedLockModule.forRoot({ backend: memory(), shutdownGraceMs: 20 })],
      providers: [Sale],
    });
    const [lock, other] = [await quick.get(LockService).acquire('sale'), await app.get(LockService).acquire('sale')];
    await quick.close();
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    expect(other.isHeld).toBe(true);
    await other.release();
  });
});
