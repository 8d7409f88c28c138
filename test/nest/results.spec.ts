import { AsyncResource } from 'node:async_hooks';
import { request } from 'node:http';
import { createConnection } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { Controller, Get, Injectable, Res, StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { NestFactory } from '@nestjs/core';
import { currentLock, DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { lastValueFrom, type Observable, of, Subject, toArray } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { atLeastMs } from '../support/machine.js';
import { closing, context, listen, root } from './apps.js';

let source = new PassThrough();

@Injectable()
class Exports {
  @Locked('export')
  async file(): Promise<StreamableFile> {
    return new StreamableFile((source = new PassThrough()));
  }
  @Locked('export')
  async node(): Promise<PassThrough> {
    return (source = new PassThrough());
  }
  @Locked('export')
  async web(): Promise<ReadableStream<string>> {
    return ReadableStream.from(this.#rows());
  }
  @Locked('export')
  async response(): Promise<Response> {
    return new Response('rows', { status: 201, headers: { 'x-rows': '2' } });
  }
  @Locked('export')
  async rows(): Promise<AsyncGenerator<string>> {
    return this.#rows();
  }
  @Locked('export', { outliveClient: true })
  async kept(): Promise<AsyncGenerator<string>> {
    return this.#rows();
  }
  @Locked('export')
  async iterable(): Promise<AsyncIterable<string>> {
    return { [Symbol.asyncIterator]: () => this.#rows() };
  }
  readonly ticks = new Subject<string>();
  @Locked('export')
  async observable(): Promise<Observable<string>> {
    return this.ticks;
  }
  @Locked('export')
  async stop(): Promise<() => void> {
    return () => undefined;
  }
  @Locked('export')
  async subscription(): Promise<object> {
    return of(1).subscribe();
  }
  @Locked('export')
  async plain(): Promise<object> {
    return { rows: [new Map(), Buffer.from('')], at: new Date(0) };
  }

  async *#rows(): AsyncGenerator<string> {
    yield `one under ${currentLock()?.key}`;
    yield 'two';
  }
}

@Controller()
class Downloads {
  constructor(private readonly exports: Exports) {}
  @Get('file')
  @Locked('file')
  async file(): Promise<StreamableFile> {
    return new StreamableFile((source = new PassThrough()));
  }
  @Get('service')
  service(): Promise<StreamableFile> {
    return this.exports.file();
  }
  @Get('never')
  never(): Promise<never> {
    return new Promise(() => undefined);
  }
  @Get('rows')
  async unread(): Promise<string> {
    await this.exports.rows();
    return 'unread';
  }
  kept: AsyncGenerator<string> | undefined;
  @Get('kept')
  async keep(): Promise<string> {
    this.kept = await this.exports.kept();
    return 'kept';
  }
  later: (() => Promise<string[]>) | undefined;
  @Get('later')
  runLater(): string {
    this.later = AsyncResource.bind(() => this.#readRows());
    return 'later';
  }
  async #readRows(): Promise<string[]> {
    const rows: string[] = [];
    for await (const row of await this.exports.rows()) {
      rows.push(row);
      for (let iteration = 0; iteration < 3; iteration += 1) await setImmediate();
    }
    return rows;
  }
  @Get('own')
  @Locked('own')
  async own(@Res() response: object): Promise<void> {
    (source = new PassThrough()).pipe(rawOf(response));
  }
}

function rawOf(response: object): NodeJS.WritableStream {
  return ('raw' in response ? response.raw : response) as NodeJS.WritableStream;
}

describe('a lock lasts as long as what the method returns', () => {
  async function start(store = new MemoryLeaseStore()) {
    const imports = [
      DistributedLockModule.forRoot({ backend: new LockBackend(store), defaults: { ttlMs: atLeastMs(600) } }),
    ];
    const app = await context({ imports, providers: [Exports] });
    const locks = app.get(LockService);
    const isHeld = (): boolean => locks.inspect().length > 0;
    return { exports: app.get(Exports), isHeld, store };
  }

  it('a file, until its stream ends or is destroyed', async () => {
    const { exports, isHeld } = await start();
    const file = await exports.file();
    expect(isHeld()).toBe(true);
    file.getStream().resume();
    source.end('all');
    await eventually(() => !isHeld());
    await exports.file();
    source.destroy();
    await eventually(() => !isHeld());
  });

  it('a stream of Node, until it ends or fails', async () => {
    const { exports, isHeld } = await start();
    const stream = await exports.node();
    expect(isHeld()).toBe(true);
    stream.end('row');
    expect(await text(stream)).toBe('row');
    await eventually(() => !isHeld());
    (await exports.node()).on('error', () => undefined).destroy(new Error('disk'));
    await eventually(() => !isHeld());
  });

  it('a stream of the web, until it ends or is cancelled', async () => {
    const { exports, isHeld } = await start();
    const stream = await exports.web();
    expect(isHeld()).toBe(true);
    expect(await text(stream.pipeThrough(new TextEncoderStream()))).toBe('one under exporttwo');
    await eventually(() => !isHeld());
    await (await exports.web()).cancel();
    await eventually(() => !isHeld());
  });

  it('a response, until its body is read', async () => {
    const { exports, isHeld } = await start();
    const response = await exports.response();
    expect(isHeld()).toBe(true);
    expect([response.status, response.headers.get('x-rows'), await response.text()]).toEqual([201, '2', 'rows']);
    await eventually(() => !isHeld());
  });

  it.each(['rows', 'iterable'] as const)('an iterable, until its end or a break, %s', async (method) => {
    const { exports, isHeld } = await start();
    const seen: string[] = [];
    for await (const row of await exports[method]()) {
      seen.push(row);
      expect(isHeld()).toBe(true);
    }
    expect([isHeld(), seen]).toEqual([false, ['one under export', 'two']]);
    for await (const _ of await exports[method]()) break;
    expect(isHeld()).toBe(false);
  });

  it('an Observable that a promise resolves to, until it ends', async () => {
    const { exports, isHeld } = await start();
    const ticks = lastValueFrom((await exports.observable()).pipe(toArray()));
    exports.ticks.next('tick');
    expect(isHeld()).toBe(true);
    exports.ticks.complete();
    expect([await ticks, isHeld()]).toEqual([['tick'], false]);
  });

  it('ends what it returned when the lock is lost', async () => {
    const { exports, isHeld, store } = await start();
    const stream = await exports.node();
    const failed = new Promise((resolve) => stream.once('error', resolve));
    store.revoke('export');
    expect(await failed).toMatchObject({ code: 'LOCK_LOST' });
    const rows = await exports.rows();
    await rows.next();
    store.revoke('export');
    await eventually(() => !isHeld());
    await expect(rows.next()).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it.each([
    ['stop', 'a function'],
    ['subscription', 'a subscription'],
  ] as const)('is refused where nobody can tell how long that is, %s', async (method, what) => {
    const { exports, isHeld } = await start();
    await expect(exports[method]()).rejects.toThrow(`Exports.${method} returned ${what}, whose work would outlive`);
    expect(isHeld()).toBe(false);
  });

  it('is over when a plain value is there', async () => {
    const { exports, isHeld } = await start();
    await exports.plain();
    expect(isHeld()).toBe(false);
  });
});

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a download under a lock, %s', (_, adapter) => {
  async function start() {
    const imports = [DistributedLockModule.forRoot(memory())];
    const module = root({ imports, controllers: [Downloads], providers: [Exports] });
    const app = closing(await NestFactory.create(module, adapter(), { logger: false, forceCloseConnections: true }));
    const url = await listen(app);
    return { url, isHeld: () => app.get(LockService).inspect().length > 0, downloads: app.get(Downloads) };
  }

  it.each(['file', 'service', 'own'])('keeps its key until the last byte, "%s"', async (path) => {
    const { url, isHeld } = await start();
    const before = source;
    const answer = fetch(`${url}/${path}`);
    await eventually(() => source !== before);
    source.write('first, ');
    expect(isHeld()).toBe(true);
    source.end('last');
    expect(await (await answer).text()).toBe('first, last');
    await eventually(() => !isHeld());
  });

  it.each(['file', 'service', 'own'])('frees its key when the client goes away, "%s"', async (path) => {
    const { url, isHeld } = await start();
    const client = request(`${url}/${path}`);
    client.on('error', () => undefined);
    client.end();
    await eventually(isHeld);
    source.write('first');
    client.destroy();
    await eventually(() => !isHeld());
  });

  it.each(['file', 'service', 'own'])(
    'frees its key when its pipelined request loses its connection, "%s"',
    async (path) => {
      const { url, isHeld } = await start();
      const connection = createConnection(Number(new URL(url).port), '127.0.0.1');
      connection.write(['never', path].map((name) => `GET /${name} HTTP/1.1\r\nHost: shop\r\n\r\n`).join(''));
      await eventually(isHeld);
      connection.destroy();
      await eventually(() => !isHeld());
    },
  );

  it('frees the key of a result that nobody read when the request is over', async () => {
    const { url, isHeld } = await start();
    expect(await (await fetch(`${url}/rows`)).text()).toBe('unread');
    await eventually(() => !isHeld());
  });

  it('lets work that a request left behind read a result of its own', async () => {
    const { url, downloads, isHeld } = await start();
    expect(await (await fetch(`${url}/later`)).text()).toBe('later');
    expect(await downloads.later?.()).toEqual(['one under export', 'two']);
    expect(isHeld()).toBe(false);
  });

  it('keeps the key of a result that outlives its request', async () => {
    const { url, isHeld, downloads } = await start();
    expect(await (await fetch(`${url}/kept`)).text()).toBe('kept');
    expect(await downloads.kept?.next()).toMatchObject({ value: 'one under export' });
    expect(isHeld()).toBe(true);
    await downloads.kept?.return(undefined);
    expect(isHeld()).toBe(false);
  });
});
