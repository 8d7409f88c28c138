import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { createOwnClientOptions } from '../../../lib/backends/redis/clients/ioredis.js';
import { askRedis, eventually, failureOf, handled, RedisServer, timeLimitOf } from '../../support/index.js';

/** Enough keys for a load that takes many times as long as a command may, with the delay below. */
const KEYS = 12_000;
const LOAD_DELAY_US = 1_000;

/** Puts a server out of service; what it returns ends that. */
type Trouble = (server: RedisServer) => Promise<() => Promise<unknown>>;

const TROUBLES: Readonly<Record<string, Trouble>> = {
  READONLY: async ({ port }) => {
    await askRedis(port, 'REPLICAOF 127.0.0.1 1');
    return () => askRedis(port, 'REPLICAOF NO ONE');
  },
  MASTERDOWN: async ({ port }) => {
    await askRedis(port, 'CONFIG SET replica-serve-stale-data no');
    await askRedis(port, 'REPLICAOF 127.0.0.1 1');
    return () => askRedis(port, 'REPLICAOF NO ONE');
  },
  BUSY: async ({ port }) => {
    await askRedis(port, 'CONFIG SET busy-reply-threshold 10');
    const script = askRedis(port, 'EVAL "while true do end" 0', 60_000);
    await eventually(async () => expect(await askRedis(port, 'PING')).toMatch(/^BUSY/));
    return () => Promise.all([script, askRedis(port, 'SCRIPT KILL')]);
  },
  LOADING: async (server) => {
    await askRedis(server.port, `EVAL "for i = 1, ${KEYS} do redis.call('SET', 'k' .. i, i) end return 1" 0`);
    const back = handled(server.restart({ empty: false }));
    await eventually(async () => expect(await askRedis(server.port, 'PING')).toMatch(/^LOADING/));
    return async () => {
      await askRedis(server.port, 'CONFIG SET key-load-delay 0', timeLimitOf(20_000));
      await back;
    };
  },
};

/**
 * A replica without a master says so to scripts only. A client does not talk to a server that loads, unless what it sends as
 * it connects is answered so.
 */
const SAID: Readonly<Record<string, RegExp>> = {
  MASTERDOWN: /MASTERDOWN|READONLY/,
  LOADING: /LOADING|no answer|connection/,
};

describe.each(Object.entries(TROUBLES))('R12: a server that answers %s', (code, begin) => {
  let server: RedisServer;
  let services: LockService[];

  beforeEach(async () => {
    services = [];
    server = await RedisServer.start({ persistent: true, args: ['--key-load-delay', String(LOAD_DELAY_US)] });
  });
  afterEach(async () => {
    await Promise.all(services.map((service) => service.close(1_000)));
    await server.stop();
  });

  function connect(mode: RedisMode): LockService {
    const service = new LockService(redis({ url: server.url, mode, patienceMs: 20_000 }));
    services.push(service);
    return service;
  }

  // Who is not let in has no mode.
  const modes: readonly RedisMode[] = code === 'LOADING' ? ['queue'] : ['queue', 'plain', 'getset'];

  it.each(modes)('is asked again, and never takes a key for held (%s)', async (mode) => {
    const [holder, other, waiter] = [connect(mode), connect(mode), connect(mode)];
    const lock = await holder.acquire('key', { ttlMs: 60_000 });
    await expect(other.tryAcquire('key')).resolves.toBeNull();
    const end = await begin(server);
    const error = await failureOf(other.tryAcquire('key'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toMatch(SAID[code] ?? code);
    const waiting = waiter.acquire('key', { waitMs: 20_000 });
    await end();
    await eventually(async () => expect(await other.tryAcquire('key')).toBeNull());
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await (await waiting).release();
  });
});

describe('a connection of ours leaves a server that is the master no more', () => {
  it.each([
    "READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'NOREPLICAS Not enough good replicas to write.',
    "ERR Error running script (call to f_4ae1): @user_script:16: @user_script: 16: -READONLY You can't write against a read only replica.",
  ])('which says %s', (message) => {
    expect(createOwnClientOptions().reconnectOnError(new Error(message))).toBe(true);
  });

  it('and once in a while only because it misses replicas, which may last', () => {
    const { reconnectOnError } = createOwnClientOptions();
    const error = new Error('NOREPLICAS Not enough good replicas to write.');
    expect([reconnectOnError(error), reconnectOnError(error)]).toEqual([true, false]);
  });

  it('and no other, whatever it says', () => {
    expect(createOwnClientOptions().reconnectOnError(new Error('ERR value is not an integer or out of range'))).toBe(
      false,
    );
  });
});
