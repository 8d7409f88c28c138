import { Redis } from 'ioredis';
import { SimpleError } from 'redis';
import { SimpleError as SimpleError5, TimeoutError } from 'redis-5';
import { isErrorReply } from '../../../lib/backends/redis/error.js';

// As a bundler shortens the names of node-redis.
class a extends Error {}
class b extends a {}
class VaultError extends Error {}

describe('an answer of the server that is an error', () => {
  it.each<[string, Error]>([
    ['ioredis', Object.assign(new Error('ERR no'), { name: 'ReplyError' })],
    ['node-redis 6', new SimpleError('ERR no')],
    ['node-redis 5', new SimpleError5('a script without a code')],
    ['node-redis in a bundle', new b('READONLY You cannot write')],
  ])('is one by %s', (_client, error) => {
    expect(isErrorReply(error)).toBe(true);
  });

  it.each<[string, unknown]>([
    ['of Node', Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
    ['of a login function', new Error('VAULT is closed')],
    ['of a login function with a class', new VaultError('VAULT is closed')],
    ['of node-redis itself', new TimeoutError('Timeout')],
    ['of a type', new TypeError('ERR no')],
    ['that is none', 'ERR no'],
    ['that is a reply', new Redis({ lazyConnect: true })],
  ])('is no error %s', (_what, error) => {
    expect(isErrorReply(error)).toBe(false);
  });
});
