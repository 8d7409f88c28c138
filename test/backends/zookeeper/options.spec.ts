import fc from 'fast-check';
import { LockBackendError, LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { zookeeper, type ZooKeeperOptions } from 'nestjs-distributed-lock/zookeeper';
import { parseConnectString } from '../../../lib/backends/zookeeper/connect-string.js';
import {
  createNamePrefix,
  encodeData,
  readHolder,
  encodeNamePart,
  parseOwnerOfData,
} from '../../../lib/backends/zookeeper/znode-name.js';
import { sortBySequence, areSequencesExhausted } from '../../../lib/backends/zookeeper/queue-order.js';
import { timeLimitOf } from '../../support/machine.js';

const connectString = '127.0.0.1:2181';

const REFUSED: readonly (readonly [option: string, given: unknown])[] = [
  ['options', undefined],
  ['options', null],
  ['options', 'localhost:2181'],
  ['servers', { connectString, servers: [] }],
  ['connectString', {}],
  ['connectString', { connectString: '' }],
  ['connectString', { connectString: 42 }],
  ['connectString', { connectString: ',' }],
  ['connectString', { connectString: 'a,,b' }],
  ['connectString', { connectString: 'a b:2181' }],
  ['connectString', { connectString: 'a:0' }],
  ['connectString', { connectString: 'a:65536' }],
  ['connectString', { connectString: 'a:port' }],
  ['connectString', { connectString: '::1:2181' }],
  ['connectString', { connectString: 'zk://user:canary-password@host:2181' }],
  ['connectString', { connectString: 'user:canary-password@host:2181' }],
  ['connectString', { connectString: 'a/../b' }],
  ['connectString', { connectString: 'a//b' }],
  ['connectString', { connectString: 'a/b c' }],
  ['sessionTtlMs', { connectString, sessionTtlMs: 0 }],
  ['sessionTtlMs', { connectString, sessionTtlMs: -1 }],
  ['sessionTtlMs', { connectString, sessionTtlMs: Number.NaN }],
  ['sessionTtlMs', { connectString, sessionTtlMs: Infinity }],
  ['sessionTtlMs', { connectString, sessionTtlMs: 2 ** 31 }],
  ['sessionTtlMs', { connectString, sessionTtlMs: '10s' }],
  ['prefix', { connectString, prefix: '' }],
  ['prefix', { connectString, prefix: '/' }],
  ['prefix', { connectString, prefix: 'locks' }],
  ['prefix', { connectString, prefix: '/locks/' }],
  ['prefix', { connectString, prefix: '/./locks' }],
  ['prefix', { connectString, prefix: '/lo\0cks' }],
  ['prefix', { connectString, prefix: ['/locks'] }],
  ['requestTimeoutMs', { connectString, requestTimeoutMs: 0 }],
  ['patienceMs', { connectString, patienceMs: -1 }],
  ['mode', { connectString, mode: 'plain' }],
  ['mode', { connectString, mode: 'constructor' }],
  ['credentials', { connectString, credentials: 'user:canary-password' }],
  ['credentials', { connectString, credentials: { username: 'us:er', password: 'canary-password' } }],
  ['credentials', { connectString, credentials: { username: '', password: 'canary-password' } }],
  ['credentials', { connectString, credentials: { username: 'user' } }],
  ['credentials', { connectString, credentials: null }],
  ['acl', { connectString, acl: [] }],
  ['acl', { connectString, acl: 'world:anyone:r' }],
  ['acl', { connectString, acl: [null] }],
  ['acl', { connectString, acl: [{ scheme: 'world', id: 'anyone' }] }],
  ['acl', { connectString, acl: [{ scheme: 'world', id: 'anyone', permissions: 'x' }] }],
  ['acl', { connectString, acl: [{ scheme: 'world', id: 'anyone', permissions: '' }] }],
];

describe('zookeeper options', () => {
  it.each(REFUSED)('%s: %j is refused where it is given, without a secret', (option, given) => {
    // Not every caller has a compiler.
    const make = (): unknown => zookeeper(given as ZooKeeperOptions);
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(expect.objectContaining({ option, message: expect.not.stringContaining('canary') }));
  });

  it('patienceMs is how long a server that is away is asked again', async () => {
    const service = new LockService(zookeeper({ connectString: '127.0.0.1:1', patienceMs: 300 }));
    const since = performance.now();
    await expect(service.acquire('k', { waitMs: 60_000 })).rejects.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
    await service.close();
  });

  it('connect strings name servers and a chroot', () => {
    const parsed = parseConnectString(' zk-1.example.com, 10.0.0.2:2182 ,[2001:db8::1]:2183/shop/eu/ ');
    expect(parsed).toEqual({
      servers: [
        { host: 'zk-1.example.com', port: 2181 },
        { host: '10.0.0.2', port: 2182 },
        { host: '2001:db8::1', port: 2183 },
      ],
      chroot: '/shop/eu',
    });
    expect(parseConnectString('localhost/').chroot).toBe('');
  });
});

describe('names of nodes', () => {
  it('are one for each key, may be names of nodes, and give the key back', () => {
    const keys = fc.string({ unit: 'binary', minLength: 1 }).filter((key) => key.isWellFormed());
    fc.assert(
      fc.property(keys, (key) => {
        const name = encodeNamePart(key);
        expect(name).toMatch(/^[\w.!~*'()%-]+$/u);
        expect(['.', '..']).not.toContain(name);
        expect(decodeURIComponent(name)).toBe(key);
      }),
    );
  });

  it('say who contends, whatever the label and the owner are', () => {
    const metadata = { host: 'h', pid: 7, label: '\ud800/:'.repeat(50) };
    const name = createNamePrefix(metadata, 'o/w:n');
    expect(name).toMatch(/^7@[^/:]+:o%2Fw%3An:$/u);
    expect(name.length).toBeLessThan(600);
  });

  it("lie over data that may be anybody's", () => {
    const state = { czxid: 1n, sessionId: Buffer.alloc(8), ctime: Buffer.from('0000019aa0000000', 'hex') };
    const since = new Date(0x019aa0000000);
    const holderIn = (data: Buffer | undefined) => readHolder({ ...state, data });
    expect(holderIn(encodeData({ host: 'h', pid: 7, label: 'l' }))).toEqual({ host: 'h', pid: 7, label: 'l', since });
    expect(holderIn(encodeData({ host: 'h', pid: 7 }, 'owner'))).toEqual({ host: 'h', pid: 7, since });
    expect(parseOwnerOfData({ ...state, data: encodeData({ host: 'h', pid: 7 }, 'owner') })).toBe('owner');
    for (const text of [undefined, '', 'text', 'null', '[]', '{"host":1}', '{"pid":7}']) {
      const data = text === undefined ? undefined : Buffer.from(text);
      expect(holderIn(data)).toBeUndefined();
      expect(parseOwnerOfData({ ...state, data })).toBeUndefined();
    }
  });
});

describe('the queue', () => {
  it('is in the order of the numbers, whoever is in it', () => {
    const names = ['9@z:b:0000000010', '1@a:a:0000000009', 'z:y:x', '5@a:c:0000000100', 'someone-else-0000000001'];
    expect(sortBySequence(names)).toEqual(['1@a:a:0000000009', '9@z:b:0000000010', '5@a:c:0000000100']);
  });

  it('tells when the numbers are used up', () => {
    expect(areSequencesExhausted(['1@a:a:0000000000', '1@a:a:2147483646', 'other'])).toBe(false);
    expect(areSequencesExhausted(['1@a:a:2147483647'])).toBe(true);
    expect(areSequencesExhausted(['1@a:a:2147483646', '1@a:a:-2147483648'])).toBe(true);
    expect(areSequencesExhausted(['1@a:a:-000000001'])).toBe(true);
  });
});
