import { Cluster, Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { atLeastMs, describeWanted, RedisServer } from '../../support/index.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(600);

const urls = [1, 2, 3].map((port) => `redis://127.0.0.1:${port}`);
const idle = (port: number): Redis => new Redis({ port, lazyConnect: true });
const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });

/** As JavaScript would call it. */
function attempt(options: unknown): unknown {
  try {
    Reflect.apply(redlock, undefined, [options]);
  } catch (error) {
    return error;
  }
  return undefined;
}

describeWanted(['redlock'], '%s()', () => {
  it.each<[string, unknown, option: string]>([
    ['no options', undefined, 'options'],
    ['null', null, 'options'],
    ['neither urls nor clients', {}, 'urls'],
    ['both', { urls, clients: [idle(1)] }, 'clients'],
    ['no list', { urls: urls[0] }, 'urls'],
    ['an empty list', { urls: [] }, 'urls'],
    ['no client at all', { clients: [] }, 'clients'],
    ['what is no URL', { urls: [...urls, 'localhost:6379'] }, 'urls'],
    ['a URL of something else', { urls: [...urls, 'https://127.0.0.1'] }, 'urls'],
    ['a URL that is no string', { urls: [...urls, 6379] }, 'urls'],
    ['one server twice', { urls: [...urls, urls[0]] }, 'urls'],
    ['two databases of one server', { urls: ['redis://host/0', 'redis://host:6379/1', 'redis://other'] }, 'urls'],
    ['a client that is none', { clients: [{ get: () => undefined }] }, 'clients'],
    ['a client that is null', { clients: [null] }, 'clients'],
    ['a cluster', { clients: [cluster] }, 'clients'],
    ['two clients of one server', { clients: [idle(1), idle(1)] }, 'clients'],
    ['an empty prefix', { urls, prefix: '' }, 'prefix'],
    ['a prefix with braces', { urls, prefix: 'lock{1}' }, 'prefix'],
    ['a time-out of 0', { urls, requestTimeoutMs: 0 }, 'requestTimeoutMs'],
    ['NaN', { urls, requestTimeoutMs: Number.NaN }, 'requestTimeoutMs'],
    ['a time-out as text', { urls, requestTimeoutMs: '500' }, 'requestTimeoutMs'],
    ['no end of a time-out', { urls, requestTimeoutMs: Infinity }, 'requestTimeoutMs'],
    ['no skew at all', { urls, maxSkewMs: 0 }, 'maxSkewMs'],
    ['a skew of a day', { urls, maxSkewMs: 86_400_000 }, 'maxSkewMs'],
    ['a negative quarantine', { urls, restartQuarantineMs: -1 }, 'restartQuarantineMs'],
    ['a semaphore', { urls, permits: 3 }, 'permits'],
  ])('refuses %s', (_what, options, option) => {
    const error = attempt(options);
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error).toMatchObject({ option, message: expect.stringContaining(option) });
  });

  it('refuses a wrong URL without repeating it, for its password', () => {
    const error = attempt({ urls: ['redis://user:s3cret@host:port'] });
    expect(error).toMatchObject({ option: 'urls' });
    expect(String(error)).not.toContain('s3cret');
  });

  it('advises against an even number, and for the rest has nothing to say before it is asked', async () => {
    const even = redlock({ urls: [...urls, 'redis://127.0.0.1:4'] })();
    const odd = redlock({ urls: urls.map((url) => url.replace('//', '//user:s3cret@')) })();
    expect(even.store.health?.current).toMatchObject({
      status: 'idle',
      detail: expect.stringContaining('odd number'),
    });
    expect(odd.store.health?.current).toEqual({
      status: 'idle',
      nodes: [1, 2, 3].map((port) => ({ name: `127.0.0.1:${port}`, status: 'idle' })),
    });
    await Promise.all([even.close(), odd.close()]);
  });

  it('takes clients of ioredis 5 and of 6, and never closes them', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
    const clients = servers.map(({ port }, place) => (place === 0 ? new Redis5({ port }) : new Redis({ port })));
    const service = new LockService(redlock({ clients }));
    const lock = await service.acquire('key', { ttlMs: TTL_MS });
    await new Promise((resolve) => setTimeout(resolve, TTL_MS + 100));
    expect(lock.isHeld).toBe(true);
    await lock.release();
    const names = servers.map(({ port }) => `localhost:${port}`);
    expect(service.health.nodes?.map((node) => node.name)).toEqual(names.toSorted());
    await service.close();
    await expect(Promise.all(clients.map((client) => client.ping()))).resolves.toEqual(['PONG', 'PONG', 'PONG']);
    expect(clients.map((client) => client.listenerCount('close'))).toEqual([0, 0, 0]);
    for (const client of clients) client.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  });
});
