import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { redis, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { resolveRedisOptions } from '../../../lib/backends/redis/options.js';

const url = 'redis://127.0.0.1:1';
const node = { host: '127.0.0.1', port: 1 };

/** As JavaScript would call it. */
function attempt(options: unknown): unknown {
  try {
    Reflect.apply(redis, undefined, [options]);
  } catch (error) {
    return error;
  }
  return undefined;
}

const PROMPT = { enableOfflineQueue: false, maxRetriesPerRequest: 0 };

describe('redis() refuses', () => {
  it.each<[string, unknown, option: string]>([
    ['no options', undefined, 'options'],
    ['null', null, 'options'],
    ['neither url nor client', {}, 'url'],
    [
      'a client with an offline queue, for getset',
      { client: new Redis({ lazyConnect: true }), mode: 'getset' },
      'client',
    ],
    [
      'a client that sends again what was lost, for getset',
      { client: new Redis({ lazyConnect: true, enableOfflineQueue: false }), mode: 'getset' },
      'client',
    ],
    [
      'a client whose commands wait for a pipeline, for getset',
      { client: new Redis({ ...PROMPT, lazyConnect: true, enableAutoPipelining: true }), mode: 'getset' },
      'client',
    ],
    ['both', { url, client: new Redis({ lazyConnect: true }) }, 'client'],
    ['what is no URL', { url: 'localhost:6379' }, 'url'],
    ['a URL of something else', { url: 'https://127.0.0.1' }, 'url'],
    ['a URL that is no string', { url: 6379 }, 'url'],
    ['a client that is none', { client: { get: () => undefined } }, 'client'],
    ['a client that is null', { client: null }, 'client'],
    ['a cluster without nodes', { client: { isCluster: true, connect: () => undefined } }, 'client'],
    ['two places', { url, cluster: [node] }, 'cluster'],
    ['no Sentinel', { sentinels: [], name: 'locks' }, 'sentinels'],
    ['Sentinels that are no list', { sentinels: node, name: 'locks' }, 'sentinels'],
    ['Sentinels without the name of a master', { sentinels: [node] }, 'name'],
    ['an address as text', { cluster: ['127.0.0.1:6379'] }, 'cluster'],
    ['an address without a host', { cluster: [{ port: 6379 }] }, 'cluster'],
    ['a port that is none', { cluster: [{ host: 'localhost', port: 65_536 }] }, 'cluster'],
    ['a name for a cluster, which has no master', { cluster: [node], name: 'locks' }, 'name'],
    ['a database of a cluster, which has one only', { cluster: [node], db: 1 }, 'db'],
    ['a database that is no number', { sentinels: [node], name: 'locks', db: '1' }, 'db'],
    ['a password beside a URL', { url, password: 'x' }, 'password'],
    ['a password that is no text', { cluster: [node], credentials: { password: 12_345 } }, 'credentials'],
    ['a user without a password', { cluster: [node], credentials: { username: 'app' } }, 'credentials'],
    [
      'credentials of Sentinels as text',
      { sentinels: [node], name: 'a', sentinelCredentials: 'x' },
      'sentinelCredentials',
    ],
    ['TLS by name', { cluster: [node], tls: 'yes' }, 'tls'],
    ['TLS of Sentinels by name', { sentinels: [node], name: 'locks', sentinelTls: 'yes' }, 'sentinelTls'],
    ['a NAT map that leads nowhere', { cluster: [node], natMap: { '10.0.0.1:6379': null } }, 'natMap'],
    ['half a replica', { url, minReplicas: 0.5 }, 'minReplicas'],
    ['negative patience', { url, patienceMs: -1 }, 'patienceMs'],
    ['an unknown mode', { url, mode: 'Queue' }, 'mode'],
    ['a mode that is inherited', { url, mode: 'constructor' }, 'mode'],
    ['an empty prefix', { url, prefix: '' }, 'prefix'],
    ['a prefix with braces', { url, prefix: 'lock{1}' }, 'prefix'],
    ['a prefix with a line break', { url, prefix: 'lock\n' }, 'prefix'],
    ['a prefix that is no string', { url, prefix: 1 }, 'prefix'],
    ['a time-out of 0', { url, requestTimeoutMs: 0 }, 'requestTimeoutMs'],
    ['a negative time-out', { url, requestTimeoutMs: -1 }, 'requestTimeoutMs'],
    ['NaN', { url, requestTimeoutMs: Number.NaN }, 'requestTimeoutMs'],
    ['a time-out as text', { url, requestTimeoutMs: '1000' }, 'requestTimeoutMs'],
    ['no end of a time-out', { url, requestTimeoutMs: Infinity }, 'requestTimeoutMs'],
    ['an option that it does not know', { url, timeout: 5 }, 'timeout'],
  ])('%s', (_what, options, option) => {
    const error = attempt(options);
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error).toMatchObject({ option, message: expect.stringContaining(option) });
  });

  it.each([
    ['a port without a host', { port: 6380 }, 'url'],
    ['a host that is no text', { host: 1 }, 'host'],
    ['a port that is none', { host: 'redis.internal', port: '6379' }, 'host'],
    ['a password that is no text', { host: 'redis.internal', password: 12_345 }, 'password'],
    ['a database that is no number', { host: 'redis.internal', db: '1' }, 'db'],
    ['a URL beside a host', { host: 'redis.internal', url }, 'host'],
    ['a database in the URL that is no number', { url: 'redis://user:s3cret@redis.internal/abc' }, 'url'],
    ['an unknown option beside a host', { host: 'redis.internal', keyPrefix: 'app:' }, 'keyPrefix'],
  ])('%s', (_what, options, option) => {
    const error = attempt(options);
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error).toMatchObject({ option });
    expect(String(error)).not.toMatch(/s3cret|12.?345/u);
  });

  it('a password that breaks a URL, with what to do about it', () => {
    const error = attempt({ url: 'redis://user:p#ss/word@redis.internal:6379' });
    expect(error).toMatchObject({ option: 'url', message: expect.stringContaining('encodeURIComponent') });
    expect(String(error)).not.toContain('p#ss');
  });

  it('a client for getset that sends late, with what to do about it', () => {
    const client = new Redis({ lazyConnect: true });
    expect(String(attempt({ client, mode: 'getset' }))).toMatch(/enableOfflineQueue: false, maxRetriesPerRequest: 0/);
  });

  it('a wrong password without repeating it', () => {
    expect(String(attempt({ cluster: [node], credentials: { password: 12_345 } }))).not.toContain('12345');
  });

  it('a wrong URL without repeating it, for its password', () => {
    const error = attempt({ url: 'redis://user:s3cret@host:port' });
    expect(error).toMatchObject({ option: 'url' });
    expect(String(error)).not.toContain('s3cret');
  });
});

describe('redis() takes', () => {
  it('clients of ioredis 5 and 6, by type and at run time', async () => {
    const clients: RedisOptions[] = [
      { client: new Redis({ lazyConnect: true }) },
      { client: new Redis5({ lazyConnect: true }) },
      { client: new Cluster([node], { lazyConnect: true }) },
      { client: new Cluster5([node], { lazyConnect: true }) },
    ];
    for (const options of clients) {
      const backend = redis(options)();
      expect(backend.store.health?.current).toMatchObject({ status: 'idle' });
      await backend.close();
    }
  });

  it('waits for a failover with a client that asks Sentinels for the master', () => {
    const client = new Redis({ sentinels: [node], name: 'locks', lazyConnect: true });
    expect(resolveRedisOptions({ client }).patienceMs).toBe(30_000);
    expect(resolveRedisOptions({ client: new Redis({ lazyConnect: true }) }).patienceMs).toBe(2_000);
  });

  it.each<[string, RedisOptions]>([
    [
      'a client for getset that sends nothing late',
      {
        client: new Redis({ ...PROMPT, lazyConnect: true }),
        mode: 'getset',
      },
    ],
    ['a URL', { url }],
    ['Sentinels', { sentinels: [node], name: 'locks', sentinelCredentials: { password: 'x' }, tls: true, db: 1 }],
    [
      'a cluster',
      { cluster: [{ host: 'localhost' }], credentials: { username: 'app', password: 'x' }, natMap: { 'a:1': node } },
    ],
  ])('%s without connecting to it', async (_what, options) => {
    const backend = redis(options)();
    expect(backend.store.health?.current).toMatchObject({ status: 'idle' });
    await backend.close();
  });
});
