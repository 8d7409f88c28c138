import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Stream, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { Locked, LockService } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { closing, providing } from './apps.js';
import { Crossing } from './crossing.js';

/** Cursor as MongoDB's driver has it: `next` resolves to a document, and iterating makes an iterator of its own. */
class Cursor {
  readonly #documents = [{ id: 1 }, { id: 2 }];
  async next(): Promise<{ id: number } | null> {
    return this.#documents.shift() ?? null;
  }
  async *[Symbol.asyncIterator](): AsyncGenerator<{ id: number }> {
    for (let document = await this.next(); document; document = await this.next()) yield document;
  }
}

/** Iterator that ends with `null`, as some do against the protocol. */
class NullIterator {
  async next(): Promise<null> {
    return null;
  }
  [Symbol.asyncIterator](): this {
    return this;
  }
}

@Injectable()
class Gateway {
  @Locked('result')
  async give<Result>(create: () => Promise<Result> | Result): Promise<Result> {
    return create();
  }
}

async function start() {
  const app = await providing(new Crossing(), Gateway);
  const locks = app.get(LockService);
  return { gateway: app.get(Gateway), isHeld: () => locks.inspect().length > 0 };
}

describe('a stream that a locked method returns', () => {
  it('is a plain value without a state, as the response of superagent', async () => {
    const { gateway, isHeld } = await start();
    const answer = Object.assign(new Stream(), { text: 'all of it' });
    expect(await gateway.give(() => answer)).toBe(answer);
    expect(isHeld()).toBe(false);
  });

  it('is a plain value when it has ended or is destroyed', async () => {
    const { gateway, isHeld } = await start();
    const ended = new PassThrough();
    ended.end();
    await finished(ended.resume());
    for (const stream of [ended, new PassThrough().destroy()]) {
      await gateway.give(() => stream);
      await eventually(() => !isHeld());
    }
  });

  it('keeps the lock until it ends, in the form of old libraries, too', async () => {
    const { gateway, isHeld } = await start();
    const old = Object.assign(new Stream(), { readable: true });
    await gateway.give(() => old);
    expect(isHeld()).toBe(true);
    old.emit('end');
    await eventually(() => !isHeld());
  });

  it('keeps the lock until what was written to it is flushed', async () => {
    const { gateway, isHeld } = await start();
    let flush = (): void => undefined;
    const sink = new Writable({ write: (_chunk, _encoding, done) => void (flush = done) });
    await gateway.give(() => sink.end('row'));
    expect(isHeld()).toBe(true);
    flush();
    await eventually(() => !isHeld());
  });
});

describe('a cursor that a locked method returns', () => {
  it('can be iterated, and keeps the lock until then', async () => {
    const { gateway, isHeld } = await start();
    const ids: number[] = [];
    for await (const { id } of await gateway.give(() => new Cursor())) {
      ids.push(id);
      expect(isHeld()).toBe(true);
    }
    expect([ids, isHeld()]).toEqual([[1, 2], false]);
  });

  it('can be read to its null by next', async () => {
    const { gateway } = await start();
    const cursor = await gateway.give(() => new Cursor());
    expect([await cursor.next(), await cursor.next(), await cursor.next()]).toEqual([{ id: 1 }, { id: 2 }, null]);
    for await (const _ of cursor);
  });

  it('is over when its iterator answers null against the protocol', async () => {
    const { gateway, isHeld } = await start();
    const iterator = await gateway.give(() => new NullIterator());
    expect(await iterator.next()).toBeNull();
    expect(isHeld()).toBe(false);
  });
});

describe('a response or stream of the web that a locked method returns', () => {
  it.each([
    ['a response that was read', async () => readResponse()],
    ['a response that somebody reads', () => lockedResponse()],
    ['a stream that somebody reads', () => lockedResponse().body],
  ])('is returned as it is: %s', async (_, create: () => unknown) => {
    const { gateway, isHeld } = await start();
    const value = await create();
    expect(await gateway.give(() => value)).toBe(value);
    expect(isHeld()).toBe(false);
  });

  it('keeps its address', async () => {
    const { gateway, isHeld } = await start();
    const server = createServer(({ url }, answer) =>
      url === '/old' ? answer.writeHead(302, { location: '/new' }).end() : answer.end('new'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing({ close: async () => void server.close() } as never);
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const response = await gateway.give(() => fetch(`${origin}/old`));
    const { url, redirected, type } = response;
    expect({ url, redirected, type }).toEqual({ url: `${origin}/new`, redirected: true, type: 'basic' });
    expect(await response.text()).toBe('new');
    await eventually(() => !isHeld());
  });

  async function readResponse(): Promise<Response> {
    const response = new Response('rows');
    await response.text();
    return response;
  }

  function lockedResponse(): Response {
    const response = new Response('rows');
    response.body?.getReader();
    return response;
  }
});
