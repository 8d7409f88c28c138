import { inspect } from 'node:util';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, failureOf, timeLimitOf } from '../../support/index.js';
import { MemcachedWorld } from './memcached-world.js';
import { Terminator, TLS as tls } from './terminator.js';

const CONNECT_MS = timeLimitOf(1_000);
const credentials = { username: 'locks', password: 'canary:pass-wörd' };

describeWanted(['memcached'], '%s: a server that lets in its users only', () => {
  it.each(['auto', 'meta', 'classic'] as const)('keeps locks for one who is a user: %s', async (protocol) => {
    await using world = await MemcachedWorld.start({ credentials });
    const [ours, theirs] = [world.service({ credentials, protocol }), world.service({ credentials })];
    const lock = await ours.acquire('k');
    await expect(theirs.tryAcquire('k')).resolves.toBeNull();
    await lock.release();
    await world.server.restart({ empty: true });
    await eventually(async () => (await ours.acquire('k', { waitMs: 0 })).release());
    // It would be an item, for everybody who is let in.
    await expect(world.server.ask('get auth')).resolves.toBe('END\r\n');
  });

  it.each([
    ['another password', { ...credentials, password: 'canary' }, 'does not take these credentials'],
    ['another user', { ...credentials, username: 'canary' }, 'does not take these credentials'],
    ['no credentials', undefined, 'see the option "credentials"'],
    ['credentials that are none', () => ({ username: 'a b', password: 'canary' }), 'are not { username, password }'],
    ['a function that fails', () => Promise.reject(new Error('no such file')), 'no such file'],
    ['a function that says nothing', () => new Promise<never>(() => undefined), `said nothing within ${CONNECT_MS} ms`],
  ])('keeps out one with %s, which is told and no secret', async (_who, wrong, why) => {
    await using world = await MemcachedWorld.start({ credentials });
    const failures: unknown[] = [];
    const observers = [{ backendFailed: (event: unknown) => failures.push(event) }];
    const options = { connectTimeoutMs: CONNECT_MS, ...(wrong && { credentials: wrong }) };
    const service = world.service(options, { observers });
    await service.start();
    expect(service.health).toEqual({ status: 'down', detail: expect.stringContaining(why) });
    const failure = await failureOf(service.tryAcquire('k'));
    expect(failure).toBeInstanceOf(LockBackendError);
    expect(String(failure)).toContain(why);
    expect(inspect([failures, failure, service.health], { depth: 20 })).not.toContain('canary');
  });

  it('is asked with what a function says at the time of each connection', async () => {
    await using world = await MemcachedWorld.start({ credentials });
    const passwords = ['outdated', credentials.password];
    const service = world.service({
      credentials: async () => ({ ...credentials, password: passwords.shift() ?? '' }),
    });
    await service.start();
    expect(service.health.status).toBe('down');
    await eventually(() => service.health.status === 'up');
    expect(passwords).toEqual([]);
  });

  it('is told no password that it does not ask for', async () => {
    await using world = await MemcachedWorld.start();
    const { proxy, servers } = await world.proxy();
    const sent: string[] = [];
    proxy.onRequest((chunk) => sent.push(chunk.toString()));
    const service = world.service({ servers, credentials });
    await (await service.acquire('k')).release();
    expect(sent.join('')).not.toContain('canary');
  });
});

describeWanted(['memcached'], '%s: TLS', () => {
  it.each([
    ['the name of its server', 'localhost', {}, 'localhost'],
    ['no address', '127.0.0.1', {}, false],
    ['the name in the options, if there is one', '127.0.0.1', { servername: 'cache-1.example' }, 'cache-1.example'],
  ])('names %s, so that one address can have many', async (_what, host, more, expected) => {
    await using world = await MemcachedWorld.start();
    await using terminator = await Terminator.start(world.server.port);
    const service = world.service({ servers: `${host}:${terminator.port}`, tls: { ...tls, ...more } });
    await (await service.acquire('k')).release();
    expect(new Set(terminator.names)).toEqual(new Set([expected]));
  });

  it('takes what a function says for each connection, such as a certificate that is renewed', async () => {
    await using world = await MemcachedWorld.start();
    await using terminator = await Terminator.start(world.server.port);
    const names = ['first.example', 'second.example'];
    const service = world.service({
      servers: `127.0.0.1:${terminator.port}`,
      tls: () => ({ ...tls, servername: names.shift() ?? '' }),
    });
    await (await service.acquire('k')).release();
    await world.server.restart({ empty: true });
    await eventually(async () => (await service.acquire('k', { waitMs: 0 })).release());
    expect(terminator.names.slice(0, 2)).toEqual(['first.example', 'second.example']);
  });
});
