import { jest } from '@jest/globals';
import { type BeforeApplicationShutdown, Logger } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { once } from 'node:events';
import { type IncomingMessage, request as sendRequest } from 'node:http';
import { withFailureKind } from 'nestjs-distributed-lock/core';
import type { InspectedKey } from 'nestjs-distributed-lock/inspector';
import { keysOf, open, post } from './inspected-app.js';
import { timeLimitOf } from '../support/machine.js';

/** Resolves to the status. Unlike `fetch`, sends any `Host`. */
async function postWithHost(url: string, body: unknown, host: string, origin: string): Promise<number | undefined> {
  const headers = { host, origin, 'content-type': 'application/json', connection: 'close' };
  const sent = sendRequest(`${url}/evict`, { method: 'POST', headers }).end(JSON.stringify(body));
  const [response]: IncomingMessage[] = await once(sent, 'response');
  response?.resume();
  return response?.statusCode;
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('the inspector where not all is well, %s', (_adapterName, adapter) => {
  it('lets the application end, although an open page connects again meanwhile', async () => {
    const answers: number[] = [];
    let url = '';
    const reconnecting: BeforeApplicationShutdown = {
      beforeApplicationShutdown: async () => {
        // The end of the test closes the application again, which Nest 10 and 11 tell the hooks once more.
        if (answers.length > 0) return;
        const signal = AbortSignal.timeout(timeLimitOf(2_000));
        const response = await fetch(`${url}/events`, { signal });
        answers.push(response.status);
      },
    };
    const opened = await open(adapter(), {}, [{ provide: 'page', useValue: reconnecting }]);
    url = opened.url;
    await opened.app.close();
    expect(answers).toEqual([204]);
  });

  it('frees a key behind a proxy that names the default port', async () => {
    const { url, locks, read } = await open(adapter());
    await using _lock = await locks.acquire('k');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    const eviction = { backend: 'default', key: 'k', owner: holder?.owner };
    const behindProxy = (host: string, origin: string) => postWithHost(url, eviction, host, origin);
    expect(await behindProxy('a.example:80', 'https://a.example')).toBe(403);
    expect(await behindProxy('a.example:8080', 'http://a.example')).toBe(403);
    expect(await behindProxy('', 'http://a.example')).toBe(403);
    expect(await behindProxy('a.example:80', 'http://a.example')).toBe(200);
  });

  it('goes on after keys that cannot be read, and says so', async () => {
    const { locks, read } = await open(adapter());
    const keys = Array.from({ length: 40 }, (_, index) => `k${index + 10}`);
    const held = await Promise.all(keys.map((key) => locks.acquire(key)));
    const { store } = locks.backend;
    const look = store.look?.bind(store);
    store.look = async (key) => {
      if (/:k1[01]$/u.test(key)) throw withFailureKind(new Error('WRONGTYPE of another program'), 'value');
      return (await look?.(key)) ?? {};
    };
    const state = await read();
    const readable = keysOf(state).filter(({ holder }) => holder?.pid === process.pid);
    expect(readable.map(({ key }) => key)).toEqual(keys.slice(2));
    expect(keysOf(state)).toHaveLength(40);
    expect(state.backends[0]?.error).toMatch(/"shop:k10": WRONGTYPE of another program \(1 more key\)$/u);
    for (const lock of held) await lock.release();
  });

  it('logs a freed key without the control characters of others', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const { url, locks, read } = await open(adapter(), { who: () => 'eve\u001B[2J' });
    await using _held = await locks.acquire('k\u009B');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    await post(url, { backend: 'default', key: 'k\u009B', owner: holder?.owner });
    // Nest itself warns of a module that takes long to serialize.
    const expectedText = expect.stringMatching(/^default: "k\\u\{9B\}" is taken .* as eve\\u\{1B\}\[2J at /u);
    expect(warn.mock.calls.map(([text]) => String(text))).toContainEqual(expectedText);
    warn.mockRestore();
  });
});
