import { inspect } from 'node:util';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { atLeastMs, eventually, freePort, timeLimitOf } from '../../support/index.js';
import { SideBySide } from '../../support/side-by-side.js';
import { ownerName } from '../../support/owner-name.js';
import { RedisWorld } from './redis-world.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(600);

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];

describe.each(['ioredis', 'redis'] as const)('rights and secrets, by %s', (clientPackage) => {
  const password = 'c4n4ry-p4ssw0rd';
  const world = RedisWorld.shared();

  const urlOf = (of: RedisWorld, secret = password) => of.server.url.replace('//', `//app:${secret}@`);
  const allow = (of: RedisWorld, ...rights: string[]) =>
    of.operator.acl('SETUSER', 'app', 'reset', 'on', `>${password}`, ...rights);
  const QUEUE_RIGHTS =
    '~lock:* &lock:* &__redis__:invalidate +eval +evalsha +get +set +del +pttl +pexpire +time +publish +pubsub|numsub +subscribe +unsubscribe +exists +lindex +lpos +lrem +rpush +hget +hset +hdel +hgetall +hscan +scan +info +client|id +client|tracking +client|caching';
  const RIGHTS: Record<RedisMode, string> = {
    queue: QUEUE_RIGHTS,
    plain:
      '~lock:* &__redis__:invalidate +eval +evalsha +get +set +del +pttl +pexpire +time +subscribe +scan +info +client|id +client|tracking +client|caching',
    getset: '~lock:* +get +setnx +getset +del +time +scan +info',
  };

  it.each(MODES)('the rights in the documentation are enough (%s)', async (mode) => {
    await allow(world, ...RIGHTS[mode].split(' '));
    await world.operator.acl('LOG', 'RESET');
    const options = { mode, url: urlOf(world), clientPackage };
    const [a, b] = [world.service(options), world.service(options)];
    const lock = await a.acquire('key', { ttlMs: TTL_MS });
    const waiting = b.acquire('key', { waitMs: timeLimitOf(10_000) });
    const reader = mode === 'queue' ? await a.acquire('page', { mode: 'shared', ttlMs: TTL_MS }) : undefined;
    await new Promise((resolve) => setTimeout(resolve, TTL_MS + 100));
    if (reader) await expect(b.tryAcquire('page')).resolves.toBeNull();
    await reader?.release();
    expect(lock.isHeld).toBe(true);
    await expect(b.keys().next()).resolves.toMatchObject({ value: 'key' });
    await expect(b.evict('key')).resolves.toMatchObject({ pid: process.pid });
    await lock.release();
    await (await waiting).release();
    expect([a.health, b.health]).toEqual([{ status: 'up' }, { status: 'up' }]);
    // A connection introduces itself, chooses database 0, and asks after 5 s whether the server lives: a refusal is an answer.
    expect((await denied(world)).filter((command) => !/^(?:client|select|ping)/u.test(String(command)))).toEqual([]);
  });

  it.each(['setnx', 'getset', 'del', 'time'])('mode getset tells at the start that it lacks %s', async (command) => {
    await allow(world, ...RIGHTS.getset.split(' '), `-${command}`);
    const service = world.service({ mode: 'getset', url: urlOf(world), clientPackage });
    await service.start();
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringMatching(command) });
  });

  const together = new SideBySide(8);
  for (const right of QUEUE_RIGHTS.split(' ').filter((each) => each.startsWith('+'))) {
    together.it(`and none of them is too many: ${right} is missed`, async () => {
      await using own = await RedisWorld.start();
      await allow(own, ...QUEUE_RIGHTS.split(' ').filter((other) => other !== right));
      await toil(own).catch(() => undefined);
      await eventually(async () => expect(await denied(own)).toContain(right.slice(1)));
    });
  }
  together.run();

  /** Everything that needs a right: acquire, share, renew, wait, hand over, give up waiting, release, list. */
  async function toil(own: RedisWorld): Promise<void> {
    const options = { url: urlOf(own), clientPackage };
    const [a, b, c] = [own.service(options), own.service(options), own.service(options)];
    const lock = await a.acquire('key', { ttlMs: timeLimitOf(600), waitMs: timeLimitOf(1_000) });
    const reader = await a.acquire('page', { mode: 'shared', ttlMs: timeLimitOf(300), waitMs: timeLimitOf(1_000) });
    const leaving = c.acquire('key', { waitMs: timeLimitOf(200) }).catch(() => undefined);
    const waiting = b.acquire('key', { waitMs: timeLimitOf(800) }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, timeLimitOf(400)));
    await lock.release();
    await a.keys().next();
    // The share may have ended since it was taken: this looks.
    await b.tryAcquire('page');
    await reader.release();
    await Promise.all([leaving, (await waiting)?.release()]);
    await Promise.all([a.close(), b.close(), c.close()]);
  }

  /** Commands that the server refused since the last reset, in clients and in scripts. */
  async function denied({ operator }: RedisWorld): Promise<unknown[]> {
    const entries = await operator.acl('LOG');
    if (!Array.isArray(entries)) throw new Error('an ACL log is a list');
    return entries.map((entry) => (Array.isArray(entry) ? entry[entry.indexOf('object') + 1] : undefined));
  }

  it('R15: neither the password nor an owner is in any error or in what is printed', async () => {
    await allow(world, ...QUEUE_RIGHTS.split(' '));
    const shown: string[] = [];
    const show = (...values: unknown[]) => shown.push(...values.map((value) => inspect(value, { depth: 20 })));
    const observers = [
      {
        backendFailed: (event: object) => show(event),
        healthChanged: (event: object) => show(event),
        jeopardy: (event: object) => show(event),
      },
    ];
    // A connection is made within this time, also on a machine that is slow.
    const requestTimeoutMs = atLeastMs(1_000);
    const failing = async (url: string, before?: () => unknown, after?: () => unknown) => {
      const service = world.closing(new LockService(redis({ url, requestTimeoutMs, clientPackage }), { observers }));
      await before?.();
      await service.tryAcquire('key').catch((error: unknown) => show(error));
      show(service, service.backend, service.health);
      await after?.();
    };
    await failing(urlOf(world, `${password}-wrong`));
    expect(shown.join()).toContain('WRONGPASS');
    await failing(`redis://app:${password}@127.0.0.1:${await freePort()}`);
    expect(shown.join()).toContain('ECONNREFUSED');
    await world.operator.acl('SETUSER', 'app', '-evalsha');
    await failing(urlOf(world));
    expect(shown.join()).toContain('NOPERM');
    await allow(world, ...QUEUE_RIGHTS.split(' '));
    await world.operator.rpush('lock:{key}', 'x');
    await failing(urlOf(world));
    expect(shown.join()).toContain('WRONGTYPE');
    await failing(
      urlOf(world),
      () => world.server.freeze(),
      () => world.server.thaw(),
    );
    expect(shown.join()).toContain(`no answer within ${requestTimeoutMs} ms`);
    expect(shown.join()).not.toContain(password);
    expect(shown.join()).not.toContain(await ownerName());
  });
});
