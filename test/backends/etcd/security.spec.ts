import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { LockBackendError, type LockService } from 'nestjs-distributed-lock/core';
import { EtcdError, isFinalError } from '../../../lib/backends/etcd/error.js';
import {
  describeWanted,
  eventually,
  failureOf,
  TemporaryDirectory,
  throughout,
  timeLimitOf,
} from '../../support/index.js';
import { EtcdOperator } from './operator.js';
import { EtcdWorld, wholeSecondsOf } from './etcd-world.js';
import { asRoot, CHEAP, CREDENTIALS, enableUsers } from './users.js';

describeWanted(['etcd'], 'users of etcd', () => {
  const world = EtcdWorld.shared({ args: ['--auth-token-ttl', '1', ...CHEAP] });
  let root: EtcdOperator;
  beforeAll(async () => {
    root = await enableUsers(world);
  });

  it('need no more than read and write on the prefix, to acquire, wait, hold and release', async () => {
    const [ours, theirs] = [world.service({ credentials: CREDENTIALS }), world.service({ credentials: CREDENTIALS })];
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 10_000 });
    await throughout(2_500, () => expect(lock.isHeld).toBe(true));
    await lock.release();
    await (await waiting).release();
  });

  it('E8: auth token expired, or unknown: a new one is asked for, and nobody notices', async () => {
    const authentications = async (): Promise<number> => (await world.server.requests())['Authenticate'] ?? 0;
    const service = world.service({ credentials: CREDENTIALS, sessionTtlMs: 60_000 });
    await (await service.acquire('k')).release();
    const before = await authentications();
    // Longer than a token lives that is not used.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await (await service.acquire('k', { waitMs: 0 })).release();
    expect(await authentications()).toBe(before + 1);
    await world.server.restart({ empty: false });
    await (await eventually(() => service.acquire('k', { waitMs: 0 }))).release();
  });

  it('E8: rights changed meanwhile: nobody notices', async () => {
    const service = world.service({ credentials: CREDENTIALS, sessionTtlMs: 60_000 });
    await (await service.acquire('k')).release();
    root = await asRoot(world);
    await root.ask('auth/user/add', { name: 'another', password: 'one' });
    await (await service.acquire('k', { waitMs: 0 })).release();
  });

  it('are woken when a key is free, also after an administrator has set their password', async () => {
    const [ours, theirs] = [1, 2].map(() => world.service({ credentials: CREDENTIALS, sessionTtlMs: 60_000 }));
    if (!ours || !theirs) throw new Error('there are two');
    root = await asRoot(world);
    const before = await watches(world);
    await wake(world, ours, theirs);
    for (let round = 0; round < 3; round += 1) {
      root = await asRoot(world);
      const { username: name, password } = CREDENTIALS;
      await root.ask('auth/user/changepw', { name, password });
      root = await asRoot(world);
      await wake(world, ours, theirs);
    }
    expect((await watches(world)) - before).toBeLessThanOrEqual(4 * WATCHES);
  });

  it('may have a password that changes: a function is asked for it each time', async () => {
    let password: string = CREDENTIALS.password;
    const asked: string[] = [];
    const service = world.service({
      credentials: () => {
        asked.push(password);
        return Promise.resolve({ username: CREDENTIALS.username, password });
      },
    });
    await (await service.acquire('k')).release();
    const change = async (next: string): Promise<void> => {
      await (await asRoot(world)).ask('auth/user/changepw', { name: CREDENTIALS.username, password: next });
      password = next;
    };
    try {
      await change('canary-new');
      await (await service.acquire('k', { waitMs: 5_000 })).release();
      expect(asked).toContain('canary-new');
    } finally {
      await change(CREDENTIALS.password);
    }
  });

  it('show in health that their password is another one by now, for nobody gets a lock any more', async () => {
    const service = world.service({ credentials: CREDENTIALS, patienceMs: 100 });
    await (await service.acquire('before')).release();
    const { username: name, password } = CREDENTIALS;
    await (await asRoot(world)).ask('auth/user/changepw', { name, password: 'canary-new' });
    try {
      const isDown = async (): Promise<boolean> => {
        for (const key of ['a', 'b']) await failureOf(service.tryAcquire(key));
        return service.health.status === 'down';
      };
      await eventually(isDown);
      expect(service.health.detail).toContain('authentication failed');
      expect(inspect(service.health)).not.toContain('canary');
    } finally {
      await (await asRoot(world)).ask('auth/user/changepw', { name, password });
    }
    await eventually(() => service.health.status === 'up');
  });

  it('may ask again with a new token when rights have changed twice meanwhile', () => {
    const error = new EtcdError('etcdserver: revision of auth store is old', 'INVALID_ARGUMENT');
    expect([isFinalError(error), error.failureKind]).toEqual([false, 'refuses']);
  });

  it('see and evict with the rights that locks need', async () => {
    const service = world.service({ credentials: CREDENTIALS });
    await using _ = await service.acquire('seen');
    await expect(service.keys().next()).resolves.toMatchObject({ value: 'seen' });
    await expect(service.evict('seen')).resolves.toMatchObject({ pid: process.pid });
  });

  it('outside of their prefix are refused at once, for every key, and so health is down', async () => {
    const service = world.service({ credentials: CREDENTIALS, prefix: 'elsewhere' });
    const since = performance.now();
    const error = await failureOf(service.acquire('k'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(String(error)).toContain('permission denied');
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
    for (const key of ['a', 'b']) await failureOf(service.tryAcquire(key));
    await eventually(() => service.health.status === 'down');
    expect(service.health.detail).toContain('permission denied');
  });

  it.each([
    ['with a wrong password', { username: 'shop', password: 'canary-wrong' }],
    ['unknown to it', { username: 'canary-nobody', password: 'canary-7e1f' }],
    ['who do not say who they are', undefined],
  ])('%s are refused at once, and no error repeats what they said', async (_, credentials) => {
    const said: unknown[] = [];
    const note = (event: unknown) => void said.push(event);
    const observers = [{ backendFailed: note, healthChanged: note }];
    const service = world.service(credentials ? { credentials } : {}, { observers });
    const error = await failureOf(service.acquire('k'));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(inspect([error, service.health, said], { depth: 10 })).not.toContain('canary');
  });
});

describeWanted(['etcd'], 'tokens of etcd that expire (JWT)', () => {
  const TTL_MS = wholeSecondsOf(2_000);

  it(
    'who waits is woken when a key is free, before a token has expired and after',
    async () => {
      using directory = new TemporaryDirectory('etcd-jwt');
      const [secret, known] = [join(directory.path, 'jwt.key'), join(directory.path, 'jwt.pub')];
      execFileSync('openssl', ['genrsa', '-out', secret, '2048'], { stdio: 'ignore' });
      execFileSync('openssl', ['rsa', '-in', secret, '-pubout', '-out', known], { stdio: 'ignore' });
      const token = `jwt,pub-key=${known},priv-key=${secret},sign-method=RS256,ttl=${TTL_MS}ms`;
      await using world = await EtcdWorld.start({ args: ['--auth-token', token, ...CHEAP] });
      await enableUsers(world);
      const [ours, theirs] = [1, 2].map(() => world.service({ credentials: CREDENTIALS, sessionTtlMs: 60_000 }));
      if (!ours || !theirs) throw new Error('there are two');
      const before = await watches(world);
      for (let round = 0; round < 4; round += 1) {
        const root = await asRoot(world);
        await wake(world, ours, theirs);
        await eventually(async () => expect(String(await failureOf(root.list('lock/')))).toContain('token'), {
          withinMs: 2 * TTL_MS,
        });
      }
      expect((await watches(world)) - before).toBeLessThanOrEqual(4 * WATCHES);
    },
    timeLimitOf(300_000),
  );
});

/** Messages that begin and end the watch of one who waits. A watch that is refused is begun again and again. */
const WATCHES = 2;

async function watches(world: EtcdWorld): Promise<number> {
  return (await world.server.requests())['Watch'] ?? 0;
}

/** `theirs` gets a key that `ours` gives back, when both are in line. */
async function wake(world: EtcdWorld, ours: LockService, theirs: LockService): Promise<void> {
  const lock = await ours.acquire('watched', { waitMs: 20_000 });
  const waiting = theirs.acquire('watched', { waitMs: 20_000 });
  await eventually(async () => expect(await (await asRoot(world)).list('lock/watched/')).toHaveLength(2));
  // A watch that is refused is refused by now.
  await throughout(200, () => expect(lock.isHeld).toBe(true));
  await lock.release();
  await (await waiting).release();
}
