import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type ValueOrGetter, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisCredentials, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { createClient } from 'redis';
import { eventually, freePort, TemporaryDirectory, timeLimitOf } from '../../support/index.js';
import { RedisWorld } from './redis-world.js';

describe.each(['ioredis', 'redis'] as const)('how own connections get in, by %s', (clientPackage) => {
  const directory = TemporaryDirectory.shared('redis-tls');
  const [key, cert] = [join(directory, 'server.key'), join(directory, 'server.crt')];
  let world: RedisWorld;
  let tlsPort: number;

  beforeAll(async () => {
    const name = ['-subj', '/CN=redis.test', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
    const keyArgs = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key];
    execFileSync('openssl', ['req', '-x509', '-days', '2', ...name, ...keyArgs, '-out', cert], { stdio: 'ignore' });
    tlsPort = await freePort();
    const tls = { 'tls-port': tlsPort, 'tls-cert-file': cert, 'tls-key-file': key, 'tls-auth-clients': 'no' };
    world = await RedisWorld.start({
      args: Object.entries(tls).flatMap(([flag, value]) => [`--${flag}`, String(value)]),
    });
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const locksBy = (options: RedisOptions): LockService =>
    world.closing(new LockService(redis(Object.assign(options, { clientPackage }))));
  const lockBy = (options: RedisOptions): Promise<unknown> => locksBy(options).withLock('key', () => 'in');

  it('is by host and port, with a user, a password and a database', async () => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>p#ss/word', '~*', '&*', '+@all');
    const options = { host: '127.0.0.1', port: world.server.port, username: 'app', password: 'p#ss/word', db: 3 };
    const locks = locksBy(options);
    await using lock = await locks.acquire('key');
    await world.operator.select(3);
    await expect(world.operator.exists('lock:{key}')).resolves.toBe(1);
    await world.operator.select(0);
    expect(lock.isHeld).toBe(true);
  });

  it.each<[string, () => RedisOptions]>([
    ['url', () => ({ url: `rediss://127.0.0.1:${tlsPort}`, tls: { ca: readFileSync(cert) } })],
    ['url, whose scheme has no s', () => ({ url: `redis://localhost:${tlsPort}`, tls: { ca: readFileSync(cert) } })],
    ['host', () => ({ host: 'localhost', port: tlsPort, tls: { ca: readFileSync(cert) } })],
    ['host, unverified', () => ({ host: '127.0.0.1', port: tlsPort, tls: { rejectUnauthorized: false } })],
  ])('is by TLS with a certificate of its own (%s)', async (_how, options) => {
    await expect(lockBy(options())).resolves.toBe('in');
  });

  it('is by TLS for the subscription of a client that was given', async () => {
    const url = `rediss://localhost:${tlsPort}`;
    const tls = { ca: readFileSync(cert) };
    const given =
      clientPackage === 'redis' ? createClient({ url, socket: { tls: true, ...tls } }) : new Redis(url, { tls });
    world.closing({
      close: async () => {
        if (given instanceof Redis) given.disconnect();
        else given.destroy();
      },
    });
    // Only the waiter is to subscribe.
    const [a, b] = [given, given].map((client) => world.closing(new LockService(redis({ client, tracking: 'off' }))));
    const lock = await a?.acquire('key');
    const waiting = b?.acquire('key');
    await world.untilWaiting('key', 1);
    await eventually(async () => expect(await world.operator.pubsub('CHANNELS', 'lock:*')).toHaveLength(1));
    await lock?.release();
    await (await waiting)?.release();
  });

  it('fails by TLS for a certificate that nobody knows', async () => {
    await expect(lockBy({ url: `rediss://127.0.0.1:${tlsPort}` })).rejects.toThrow(/self.signed/u);
  });

  it.each<[string, (port: number, password: () => string) => RedisOptions]>([
    [
      'url',
      (port, password) => ({
        url: `redis://127.0.0.1:${port}`,
        credentials: () => ({ username: 'app', password: password() }),
      }),
    ],
    ['host', (port, password) => ({ host: '127.0.0.1', port, username: 'app', password: async () => password() })],
  ])('asks for the password anew for each connection (%s)', async (_how, options) => {
    let [password, asked] = ['first', 0];
    const rotate = async (next: string): Promise<void> => {
      password = next;
      await world.operator.acl('SETUSER', 'app', 'reset', 'on', `>${next}`, '~*', '&*', '+@all');
    };
    await rotate('first');
    const ask = (): string => {
      asked += 1;
      return password;
    };
    const [locks, other] = [locksBy(options(world.server.port, ask)), locksBy(options(world.server.port, ask))];
    const lock = await locks.acquire('key', { ttlMs: 20_000 });
    const waiting = other.acquire('key', { waitMs: 20_000 });
    await world.untilWaiting('key', 1);
    const before = asked;
    await rotate('second');
    await world.operator.client('KILL', 'USER', 'app');
    await eventually(() => expect(locks.health.status).toBe('up'));
    // Two connections of the waiter, and one of the holder.
    await eventually(() => expect(asked - before).toBeGreaterThanOrEqual(3));
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await (await waiting).release();
  });

  it('asks again for a password that could not be given', async () => {
    let asked = 0;
    const password = async (): Promise<string> => {
      asked += 1;
      if (asked < 3) throw new Error('the vault is sealed');
      return 'right';
    };
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all');
    const locks = locksBy({ host: '127.0.0.1', port: world.server.port, username: 'app', password });
    await expect(locks.withLock('key', () => 'in', { waitMs: 10_000 })).resolves.toBe('in');
    expect(asked).toBe(3);
  });

  it('takes a password that is given later than a request is answered, and asks for it once', async () => {
    let asked = 0;
    // A request that is not answered in this time ends the connection, and the next one asks again.
    const requestTimeoutMs = Math.min(timeLimitOf(400), 1_200);
    const password = async (): Promise<string> => {
      asked += 1;
      await new Promise((resolve) => setTimeout(resolve, 2 * requestTimeoutMs));
      return 'right';
    };
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all');
    const port = world.server.port;
    const locks = locksBy({ host: '127.0.0.1', port, username: 'app', password, requestTimeoutMs, patienceMs: 20_000 });
    await expect(locks.withLock('key', () => 'in', { waitMs: 10_000 })).resolves.toBe('in');
    expect(asked).toBe(1);
    await world.operator.client('KILL', 'USER', 'app');
    await eventually(() => expect(locks.health.status).toBe('up'));
    await expect(locks.withLock('key', () => 'in', { waitMs: 10_000 })).resolves.toBe('in');
    expect(asked).toBe(2);
  });

  it('takes a user and a password that two functions give, each within its time', async () => {
    const asked: string[] = [];
    const giveSlowly = async (secret: string): Promise<string> => {
      asked.push(secret);
      await new Promise((resolve) => setTimeout(resolve, 2_600));
      return secret;
    };
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all');
    const [username, password] = [() => giveSlowly('app'), () => giveSlowly('right')];
    const { port } = world.server;
    const locks = locksBy({ host: '127.0.0.1', port, username, password, patienceMs: 20_000 });
    await expect(locks.withLock('key', () => 'in', { waitMs: 20_000 })).resolves.toBe('in');
    expect(asked).toEqual(['app', 'right']);
  });

  it.each<[string, (secret: RedisCredentials) => ValueOrGetter<RedisCredentials>]>([
    ['a value', (secret) => secret],
    ['a function', (secret) => () => secret],
  ])('takes nothing of credentials but the user and the password (%s)', async (_what, give) => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all');
    const secret = { username: 'app', password: 'right', host: '127.0.0.2', port: 1, db: 5, keyPrefix: 'app:' };
    const locks = locksBy({ url: world.server.url, credentials: give(secret) });
    await using lock = await locks.acquire('key');
    await expect(world.operator.exists('lock:{key}')).resolves.toBe(1);
    expect(lock.isHeld).toBe(true);
  });

  it('is told in the health when the password of the subscription is not right any more', async () => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>first', '~*', '&*', '+@all');
    const url = `redis://app:first@127.0.0.1:${world.server.port}`;
    const [locks, other] = [locksBy({ url }), locksBy({ url })];
    const lock = await locks.acquire('key', { ttlMs: 20_000 });
    const waiting = other.acquire('key', { waitMs: 20_000 });
    await world.untilWaiting('key', 1);
    await world.operator.acl('SETUSER', 'app', 'resetpass', '>second');
    await world.operator.client('KILL', 'TYPE', 'PUBSUB');
    await eventually(() =>
      expect(other.health).toMatchObject({ status: 'up', detail: expect.stringContaining('WRONGPASS') }),
    );
    await lock.release();
    await (await waiting).release();
  });

  it('is by the nodes of Redlock, each with what it needs', async () => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all');
    const nodes = [
      { host: '127.0.0.1', port: world.server.port, username: 'app', password: () => 'right' },
      { host: 'localhost', port: tlsPort, tls: { ca: readFileSync(cert) } },
    ];
    // Both nodes let the backend in, and turn out to be one server.
    const locks = world.closing(new LockService(redlock({ nodes, prefix: 'nodes' })));
    await expect(locks.start()).rejects.toThrow('are the same server');
  });

  it('takes nothing of a query of the URL but the database and the family of addresses', async () => {
    const query = 'connectTimeout=5000&keyPrefix=app:&lazyConnect=false&enableOfflineQueue=true&family=4&db=2';
    const locks = locksBy({ url: `redis://127.0.0.1:${world.server.port}?${query}` });
    await using lock = await locks.acquire('key');
    const keys: string[] = [];
    for await (const found of locks.keys()) keys.push(found);
    expect(keys).toEqual(['key']);
    await world.operator.select(2);
    await expect(world.operator.exists('lock:{key}')).resolves.toBe(1);
    await world.operator.select(0);
    expect(lock.isHeld).toBe(true);
  });
});
