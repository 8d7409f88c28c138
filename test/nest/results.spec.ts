import { request } from 'node:http';
import { createConnection } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type NestInterceptor,
  Res,
  StreamableFile,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { NestFactory } from '@nestjs/core';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { lastValueFrom, type Observable, of, Subject, toArray } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { atLeastMs } from '../support/machine.js';
import { closing, context, listen, root } from './apps.js';

let source = new PassThrough();

async function* rows(): AsyncGenerator<string> {
  yield 'row';
}

function* numbers(): Generator<number> {
  yield 1;
}

class Entity {
  sell(): string {
    return 'sold';
  }
}

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
  async give<Result>(create: () => Result): Promise<Result> {
    return create();
  }
  readonly ticks = new Subject<string>();
  @Locked('export')
  async observable(): Promise<Observable<string>> {
    return this.ticks;
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
  @Get('object')
  @Locked('object')
  async object(): Promise<object> {
    return { getSale: () => 'run by an adapter' };
  }
  @Get('function')
  @Locked('function')
  async function(): Promise<() => string> {
    return () => 'run by an adapter';
  }
  @Get('response')
  @Locked('response')
  async response(@Res() response: object): Promise<object> {
    return rawOf(response);
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

  it('an Observable that a promise resolves to, until it ends', async () => {
    const { exports, isHeld } = await start();
    const ticks = lastValueFrom((await exports.observable()).pipe(toArray()));
    exports.ticks.next('tick');
    expect(isHeld()).toBe(true);
    exports.ticks.complete();
    expect([await ticks, isHeld()]).toEqual([['tick'], false]);
  });

  it('ends what it returned when the lock is lost', async () => {
    const { exports, store } = await start();
    const stream = await exports.node();
    const failed = new Promise((resolve) => stream.once('error', resolve));
    store.revoke('export');
    expect(await failed).toMatchObject({ code: 'LOCK_LOST' });
  });

  it.each<[string, () => unknown]>([
    ['a stream of the web', () => ReadableStream.from(rows())],
    ['a Response', () => new Response('rows')],
    ['an async iterable', rows],
    ['an async iterable', () => ({ [Symbol.asyncIterator]: rows })],
    ['a synchronous generator', numbers],
    ['a subscription', () => of(1).subscribe()],
  ])('is refused where the work would run outside of it: %s', async (what, create) => {
    const { exports, isHeld } = await start();
    await expect(exports.give(create)).rejects.toThrow(`Exports.give returned ${what}, whose work would run outside`);
    expect(isHeld()).toBe(false);
  });

  it.each<[string, () => unknown]>([
    ['a plain object', () => ({ rows: [new Map(), Buffer.from('')], at: new Date(0) })],
    ['an entity with methods', () => new Entity()],
    ['an object with functions, of a service', () => ({ sell: () => 'later' })],
    ['a function, such as an instance of knex', () => () => undefined],
    [
      'a proxy that answers every name',
      () => new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : () => 0) }),
    ],
  ])('is over when a value is there: %s', async (_, create) => {
    const { exports, isHeld } = await start();
    await exports.give(create);
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

  it.each(['file', 'own'])('frees its key when its pipelined request loses its connection, "%s"', async (path) => {
    const { url, isHeld } = await start();
    const connection = createConnection(Number(new URL(url).port), '127.0.0.1');
    connection.write(['never', path].map((name) => `GET /${name} HTTP/1.1\r\nHost: shop\r\n\r\n`).join(''));
    await eventually(isHeld);
    connection.destroy();
    await eventually(() => !isHeld());
  });

  it('frees its key when a pipelined request loses its connection, where the response itself was returned', async () => {
    const { url, isHeld } = await start();
    const connection = createConnection(Number(new URL(url).port), '127.0.0.1');
    connection.write(['never', 'response'].map((name) => `GET /${name} HTTP/1.1\r\nHost: shop\r\n\r\n`).join(''));
    await eventually(isHeld);
    connection.destroy();
    await eventually(() => !isHeld());
  });

  it.each(['object', 'function'])(
    'refuses from a handler what an adapter would run after the release: %s',
    async (path) => {
      const { url, isHeld } = await start();
      expect((await fetch(`${url}/${path}`)).status).toBe(500);
      expect(isHeld()).toBe(false);
    },
  );

  it.each(['TsRestHandlerInterceptor', 'ImplementInterceptor'])(
    'does not start with a handler under %s',
    async (name) => {
      const interceptor = {
        [name]: class implements NestInterceptor {
          intercept(_context: ExecutionContext, next: CallHandler) {
            return next.handle();
          }
        },
      }[name];
      if (!interceptor) throw new TypeError('made above');
      @Controller()
      class Contracts {
        @Get('contract')
        @UseInterceptors(interceptor as Type<NestInterceptor>)
        @Locked('contract')
        async handler(): Promise<object> {
          return {};
        }
      }
      const module = root({ imports: [DistributedLockModule.forRoot(memory())], controllers: [Contracts] });
      const app = await NestFactory.create(module, adapter(), { logger: false, abortOnError: false });
      await expect(app.init()).rejects.toThrow('Contracts.handler returns what its interceptor runs after the release');
      await app.close();
    },
  );
});
