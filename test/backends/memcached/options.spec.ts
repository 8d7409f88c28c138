import { LockBackendError, LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { memcached, type MemcachedOptions } from 'nestjs-distributed-lock/memcached';
import { resolveMemcachedOptions } from '../../../lib/backends/memcached/options.js';
import { describeWanted, timeLimitOf } from '../../support/index.js';

describeWanted(['memcached'], 'options', (_) => {
  it.each<[unknown, string, string]>([
    [undefined, 'options', 'options must be an object; they were undefined'],
    ['localhost', 'options', 'options must be an object; they were "localhost"'],
    [{}, 'servers', 'servers must be a list of "host:port"; they were undefined'],
    [{ servers: [] }, 'servers', 'servers must be a list'],
    [{ servers: '' }, 'servers', 'servers must look like "host", "host:11211" or "[::1]:11211"; one was ""'],
    [{ servers: 'a:0' }, 'servers', 'one was "a:0"'],
    [{ servers: 'a:65536' }, 'servers', 'one was "a:65536"'],
    [{ servers: 'memcached://a:1' }, 'servers', 'one was "memcached://a:1"'],
    [{ servers: 'a b' }, 'servers', 'one was "a b"'],
    [{ servers: ['a', 7] }, 'servers', 'one was 7'],
    [{ servers: ['a', 'a'] }, 'servers', 'must not name a server twice'],
    [{ servers: 'a', prefix: 'a:b' }, 'prefix', 'must be 1 to 100 letters, digits, "_", "." or "-"; it was "a:b"'],
    [{ servers: 'a', prefix: 'a\r\nflush_all' }, 'prefix', 'it was "a\\r\\nflush_all"'],
    [{ servers: 'a', prefix: '' }, 'prefix', 'it was ""'],
    [{ servers: 'a', requestTimeoutMs: 0 }, 'requestTimeoutMs', 'must be a number from 1 to 60000; it was 0'],
    [{ servers: 'a', patienceMs: -1 }, 'patienceMs', 'must be a number from 0 up, or Infinity; it was -1'],
    [{ servers: 'a', connectTimeoutMs: Number.NaN }, 'connectTimeoutMs', 'it was NaN'],
    [{ servers: 'a', protocol: 'binary' }, 'protocol', 'must be one of auto, meta, classic; it was "binary"'],
    [{ servers: 'a', tls: true }, 'tls', 'must be an object of options for node:tls'],
    [{ servers: 'a', tls: null }, 'tls', 'or a function that returns one'],
    [{ servers: 'a', credentials: 'user:canary' }, 'credentials', 'must be { username, password } without blanks'],
    [{ servers: 'a', credentials: { username: 'a:b', password: 'canary' } }, 'credentials', 'without a colon'],
    [
      { servers: 'a', credentials: { username: 'a', password: 'canary\r\nflush_all' } },
      'credentials',
      'without blanks',
    ],
    [{ servers: 'a', ttl: 1 }, 'ttl', 'ttl is no memcached option; there are servers, prefix'],
  ])('are refused at once: %j', (options, option, message) => {
    expect(() => memcached(options as MemcachedOptions)).toThrow(LockConfigurationError);
    expect(() => memcached(options as MemcachedOptions)).toThrow(expect.objectContaining({ option }));
    expect(() => memcached(options as MemcachedOptions)).toThrow(message);
    expect(() => memcached(options as MemcachedOptions)).not.toThrow('canary');
  });

  it('have defaults, and servers in words', () => {
    expect(resolveMemcachedOptions({ servers: 'cache, [::1]:11212,10.0.0.1:1' })).toMatchObject({
      servers: [
        { name: 'cache', host: 'cache', port: 11_211 },
        { name: '[::1]:11212', host: '::1', port: 11_212 },
        { name: '10.0.0.1:1', host: '10.0.0.1', port: 1 },
      ],
      prefix: 'lock',
      connectTimeoutMs: 1_000,
      requestTimeoutMs: 1_000,
      protocol: 'auto',
    });
  });

  it('say how long a server that is away is asked again', async () => {
    const service = new LockService(memcached({ servers: '127.0.0.1:1', patienceMs: 200 }));
    const since = performance.now();
    await expect(service.acquire('k', { waitMs: 60_000 })).rejects.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_500));
    await service.close();
  });

  it('connect nowhere before somebody asks', async () => {
    const backend = memcached({ servers: '192.0.2.1' })();
    expect(backend.store.health?.current).toEqual({ status: 'idle' });
    expect(backend.store).toMatchObject({
      name: 'memcached',
      guarantee: 'best-effort',
      traits: { ttlLimits: { minMs: 2_000 } },
    });
    await backend.close();
  });
});
