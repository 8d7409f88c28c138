import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { etcd, type EtcdOptions } from 'nestjs-distributed-lock/etcd';

const URL = 'http://127.0.0.1:2379';

const REFUSED: readonly (readonly [option: string, options: unknown])[] = [
  ['options', undefined],
  ['endpoints', {}],
  ['endpoints', { endpoints: [] }],
  ['endpoints', { endpoints: '127.0.0.1:2379' }],
  ['endpoints', { endpoints: 'redis://127.0.0.1' }],
  ['endpoints', { endpoints: [URL, 42] }],
  ['endpoints', { endpoints: `${URL}/path` }],
  ['endpoints', { endpoints: 'http://shop:canary@127.0.0.1:2379' }],
  ['endpoints', { endpoints: URL, tls: {} }],
  ['credentials', { endpoints: URL, credentials: 'canary' }],
  ['credentials', { endpoints: URL, credentials: { username: '', password: 'canary' } }],
  ['credentials', { endpoints: URL, credentials: { username: 'canary' } }],
  ['sessionTtlMs', { endpoints: URL, sessionTtlMs: 0 }],
  ['sessionTtlMs', { endpoints: URL, sessionTtlMs: 999 }],
  ['sessionTtlMs', { endpoints: URL, sessionTtlMs: '10' }],
  ['sessionTtlMs', { endpoints: URL, sessionTtlMs: Number.NaN }],
  ['prefix', { endpoints: URL, prefix: '' }],
  ['prefix', { endpoints: URL, prefix: 'a/b' }],
  ['requestTimeoutMs', { endpoints: URL, requestTimeoutMs: 0 }],
  ['patienceMs', { endpoints: URL, patienceMs: -1 }],
  ['ttlMs', { endpoints: URL, ttlMs: 10_000 }],
];

describe('the options of etcd()', () => {
  it.each(REFUSED)('are checked where they are given: %s in %j', (option, options) => {
    let error: unknown;
    try {
      etcd(options as EtcdOptions);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error).toMatchObject({ option });
    expect(String(error)).not.toContain('canary');
  });

  it('may be no more than a URL, and connect to nothing yet', async () => {
    const backend = etcd({ endpoints: 'http://127.0.0.1:1' })();
    expect(backend).toMatchObject({ name: 'etcd', guarantee: 'consensus' });
    expect(backend.store.health?.current).toEqual({ status: 'idle' });
    await backend.close();
  });
});
