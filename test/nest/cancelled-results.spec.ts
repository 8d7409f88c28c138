import { request } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { Controller, Get, type INestApplication, Injectable, Param, Req, Res } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { currentLock, DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { atLeastMs } from '../support/machine.js';
import { closing, context, listen, root } from './apps.js';
import { Deferred } from './crossing.js';

const steps: string[] = [];
let work = new Deferred();
let clientGone = new Deferred();

afterEach(() => {
  steps.splice(0);
  work = new Deferred();
  clientGone = new Deferred();
});

/** Emits no event that its consumer did not ask for, and wakes a pending `next` before its own clean-up has ended. */
class Events implements AsyncIterator<string> {
  #wake: (result: IteratorResult<string>) => void = () => undefined;

  next(): Promise<IteratorResult<string>> {
    if (steps.length === 0) {
      steps.push('started');
      return Promise.resolve({ done: false, value: 'one' });
    }
    steps.push('step began');
    return new Promise((resolve) => (this.#wake = resolve));
  }

  async return(): Promise<IteratorResult<string>> {
    this.#wake({ done: true, value: undefined });
    await work.promise;
    steps.push('step ended', `closed under ${currentLock()?.key}`);
    return { done: true, value: undefined };
  }
}

/** Its `next` never ends, as that of a source whose reader has left. */
class StuckIterator implements AsyncIterator<string> {
  next(): Promise<IteratorResult<string>> {
    steps.push('step began');
    return new Promise(() => undefined);
  }
}

class ClosableIterator extends StuckIterator {
  /** Answers as a generator does that has a `yield` in its `finally`. */
  return(): Promise<IteratorResult<string>> {
    return Promise.resolve({ done: false, value: 'clean-up' });
  }
}

@Injectable()
class Exports {
  @Locked('export')
  async closable(): Promise<AsyncIterable<string>> {
    return { [Symbol.asyncIterator]: () => new ClosableIterator() };
  }
  @Locked('export')
  async generator(): Promise<AsyncIterable<string>> {
    return this.#rows();
  }
  @Locked('export')
  async iterable(): Promise<AsyncIterable<string>> {
    return { [Symbol.asyncIterator]: () => this.#rows() };
  }
  @Locked('export')
  async events(): Promise<AsyncIterable<string>> {
    return { [Symbol.asyncIterator]: () => new Events() };
  }
  @Locked('export')
  async node(): Promise<AsyncIterable<string>> {
    return Readable.from(this.#rows(), { highWaterMark: 1 });
  }
  @Locked('export')
  async web(): Promise<AsyncIterable<string>> {
    return ReadableStream.from(this.#rows());
  }
  readonly stackDepths: (number | undefined)[] = [];
  readonly shared: AsyncIterable<string> = {
    [Symbol.asyncIterator]: () => {
      this.stackDepths.push(new Error('stack').stack?.split('\n').length);
      return this.#lockedRow();
    },
  };
  @Locked('report')
  async inReport(): Promise<AsyncIterable<string>> {
    return this.sharedIterable();
  }
  @Locked('export')
  async stuck(): Promise<AsyncIterable<string>> {
    return { [Symbol.asyncIterator]: () => new StuckIterator() };
  }
  @Locked('export')
  async sharedIterable(): Promise<AsyncIterable<string>> {
    return this.shared;
  }

  async *#lockedRow(): AsyncGenerator<string> {
    yield `under ${currentLock()?.key}`;
  }

  async *#rows(): AsyncGenerator<string> {
    try {
      steps.push('started');
      yield 'one';
      steps.push('step began');
      await work.promise;
      steps.push('step ended');
      yield 'two';
    } finally {
      await setImmediate();
      steps.push(`closed under ${currentLock()?.key}`);
    }
  }
}

type Kind = 'stuck' | 'generator' | 'iterable' | 'events' | 'node' | 'web';

@Controller()
class Downloads {
  constructor(private readonly exports: Exports) {}
  @Get('never')
  never(): Promise<never> {
    return new Promise(() => undefined);
  }
  @Get('own')
  @Locked('own')
  async own(@Res() response: { readonly raw?: object }): Promise<object> {
    return response.raw ?? response;
  }
  @Get(':kind')
  async read(@Param('kind') kind: Kind, @Req() { socket }: { readonly socket: Socket }): Promise<void> {
    const rows = await this.exports[kind]();
    socket.once('close', () => clientGone.resolve());
    for await (const row of rows) expect(row).toBe('one');
  }
}

async function startApplication(adapter: AbstractHttpAdapter, ttlMs: number): Promise<INestApplication> {
  const imports = [DistributedLockModule.forRoot({ backend: memory(), defaults: { ttlMs } })];
  const module = root({ imports, controllers: [Downloads], providers: [Exports] });
  return closing(await NestFactory.create(module, adapter, { logger: false, forceCloseConnections: true }));
}

/** Reads an export, and goes away in the middle of its second step. */
async function leave(kind: Kind): Promise<LockService> {
  const app = await startApplication(new ExpressAdapter(), atLeastMs(1_000));
  const client = request(`${await listen(app)}/${kind}`).on('error', () => undefined);
  client.end();
  await eventually(() => steps.includes('step began'));
  client.destroy();
  await clientGone.promise;
  return app.get(LockService);
}

describe('the lock of a result whose client has gone lasts', () => {
  it.each<[Kind, string | undefined]>([
    ['generator', 'export'],
    ['iterable', 'export'],
    ['events', 'export'],
    ['web', 'export'],
    // A stream of Node calls its source in the context of whoever reads or destroys it.
    ['node', undefined],
  ])('until the current step has ended, %s', async (kind, lockInContext) => {
    const locks = await leave(kind);
    const nextHolder = locks.withLock('export', () => void steps.push('next holder'));
    for (let iteration = 0; iteration < 5; iteration += 1) await setImmediate();
    work.resolve();
    await nextHolder;
    expect(steps).toEqual(['started', 'step began', 'step ended', `closed under ${lockInContext}`, 'next holder']);
  });

  it('for a TTL at most, where the step waits for what only the client could give', async () => {
    const locks = await leave('stuck');
    await eventually(() => locks.inspect().length === 0);
    expect(steps).toEqual(['step began']);
  });

  it.each(['Express', 'Fastify'])('no longer where the response itself was returned, %s', async (adapter) => {
    const app = await startApplication(adapter === 'Express' ? new ExpressAdapter() : new FastifyAdapter(), 60_000);
    const locks = app.get(LockService);
    const connection = createConnection(Number(new URL(await listen(app)).port), '127.0.0.1');
    connection.write(['never', 'own'].map((path) => `GET /${path} HTTP/1.1\r\nHost: shop\r\n\r\n`).join(''));
    await eventually(() => locks.inspect().length === 1);
    connection.destroy();
    await eventually(() => locks.inspect().length === 0);
  });
});

describe('an iterable under a lock', () => {
  async function start() {
    const app = await context({ imports: [DistributedLockModule.forRoot(memory())], providers: [Exports] });
    return { exports: app.get(Exports), isHeld: () => app.get(LockService).inspect().length > 0 };
  }

  it.each(['sharedIterable', 'inReport'] as const)('frees its keys at its end, "%s"', async (method) => {
    const { exports, isHeld } = await start();
    for await (const row of await exports[method]()) expect([row, isHeld()]).toEqual(['under export', true]);
    expect(isHeld()).toBe(false);
  });

  it('frees its key after "return", though a pending step never ends', async () => {
    const { exports, isHeld } = await start();
    const iterator = (await exports.closable())[Symbol.asyncIterator]();
    void iterator.next();
    await iterator.return?.();
    expect(isHeld()).toBe(false);
  });

  it('refuses iterators that are made when the lock is lost', async () => {
    const store = new MemoryLeaseStore();
    const options = { backend: new LockBackend(store), defaults: { ttlMs: atLeastMs(600) } };
    const app = await context({ imports: [DistributedLockModule.forRoot(options)], providers: [Exports] });
    const rows = await app.get(Exports).iterable();
    store.revoke('export');
    await eventually(() => app.get(LockService).inspect().length === 0);
    await expect(rows[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('is asked for its iterator directly, also where each call returns the same iterable', async () => {
    const { exports } = await start();
    for (let call = 0; call < 3; call += 1)
      for await (const row of await exports.sharedIterable()) expect(row).toBe('under export');
    expect(new Set(exports.stackDepths).size).toBe(1);
  });
});
