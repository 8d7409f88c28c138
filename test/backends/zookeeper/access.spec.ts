import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, failureOf } from '../../support/index.js';
import { ZookeeperOperator } from '../../servers/zookeeper-operator.js';
import { ownerName } from '../../support/owner-name.js';
import { ZookeeperWorld } from './zookeeper-world.js';

const AUTH = { username: 'locks', password: 'canary-password' };
const OTHER = { username: 'other', password: 'canary-password' };

describeWanted(['zookeeper'], '%s: who may do what, and where', () => {
  let world: ZookeeperWorld;
  let administrator: ZookeeperOperator;
  beforeAll(async () => {
    world = await ZookeeperWorld.start();
    administrator = new ZookeeperOperator(world.server.address, 'admin:canary-password');
  });
  afterEach(() => world.endTest());
  afterAll(async () => {
    await administrator.close();
    await world.stop();
  });

  it('nodes belong to the user of credentials: nobody else reads or deletes them', async () => {
    const key = world.key();
    const lock = await world.service({ prefix: '/ours', credentials: AUTH }).acquire(key);
    const nobody = await failureOf(world.service({ prefix: '/ours' }).acquire(key));
    const other = await failureOf(world.service({ prefix: '/ours', credentials: OTHER }).acquire(key));
    for (const error of [nobody, other]) {
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toContain('NO_AUTH: its ACL does not give this user the right');
    }
    const same = world.service({ prefix: '/ours', credentials: AUTH });
    await expect(same.tryAcquire(key)).resolves.toBeNull();
    await lock.release();
    await (await same.acquire(key)).release();
  });

  it.each(['sequential', 'simple'] as const)(
    'the right to create, delete and read below the root is enough, %s',
    async (mode) => {
      const prefix = `/least-${mode}`;
      const permissions = { scheme: 'digest', id: digest(AUTH), permissions: mode === 'simple' ? 1 | 4 | 8 : 1 | 4 };
      await administrator.create(prefix, '', [permissions]);
      const acl = [{ scheme: 'auth', id: '', permissions: 'cdr' }];
      const [ours, theirs] = [
        world.service({ prefix, mode, credentials: AUTH, acl }),
        world.service({ prefix, mode, credentials: AUTH, acl }),
      ];
      const key = world.key();
      const lock = await ours.acquire(key);
      const waiting = theirs.acquire(key);
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
      await expect(theirs.keys().next()).resolves.toMatchObject({ value: key });
      await expect(theirs.evict(key)).resolves.toMatchObject({ pid: process.pid });
      await lock.release();
      await (await waiting).release();
      await expect(failureOf(world.service({ prefix, mode }).acquire(key))).resolves.toMatchObject({
        code: 'LOCK_BACKEND',
      });
    },
  );

  it('Z12: without the right to create, an error that says so, and health is down once it is so for every key', async () => {
    await administrator.create('/closed', '', [{ scheme: 'digest', id: digest(AUTH), permissions: 1 }]);
    const service = world.service({ prefix: '/closed', credentials: AUTH });
    for (const attempt of [() => service.acquire('k'), () => service.tryAcquire('k')]) {
      const error = await failureOf(attempt());
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toMatch(
        /could not (acquire|tryAcquire) "k": the server refused to create .*\/closed.*NO_AUTH/u,
      );
    }
    expect(service.health.status).toBe('up');
    for (const key of ['a', 'b']) await failureOf(service.tryAcquire(key));
    await eventually(() => service.health.status === 'down');
    expect(service.health.detail).toContain('NO_AUTH');
  });

  it('Z12: without the right to delete, the release fails and says so, and the end of the session frees the key', async () => {
    const failures: string[] = [];
    const observers = [{ backendFailed: ({ error }: { error: unknown }) => failures.push(String(error)) }];
    const acl = [{ scheme: 'world', id: 'anyone', permissions: 'cr' }];
    const service = world.service({ prefix: '/undeletable', acl }, { observers });
    const key = world.key();
    const other = world.service({ prefix: '/undeletable', acl });
    await (await service.acquire(key)).release();
    expect(failures.join()).toMatch(
      /could not release .*the server refused to delete a node in \/undeletable.*NO_AUTH/u,
    );
    // It could not take its place in the queue away either.
    await expect(failureOf(other.tryAcquire(key))).resolves.toMatchObject({ code: 'LOCK_BACKEND' });
    await Promise.all([service.close(), other.close()]);
    await expect(world.service({ prefix: '/undeletable', acl }).tryAcquire(key)).resolves.not.toBeNull();
  });

  it('an ACL that is none is refused by the server, with its reason', async () => {
    const acl = [{ scheme: 'auth', id: '', permissions: 'r' }];
    const error = await failureOf(world.service({ prefix: '/none', acl }).acquire('k'));
    expect(String(error)).toContain('INVALID_ACL');
  });

  it('a chroot and a prefix keep applications apart, and are created when missing', async () => {
    const { address } = world.server;
    const one = world.service({ connectString: `${address}/shop/eu`, prefix: '/locks' });
    const same = world.service({ connectString: `${address}/shop`, prefix: '/eu/locks' });
    const apart = world.service({ connectString: `${address}/shop/us` });
    const key = world.key();
    const lock = await one.acquire(key);
    await expect(same.tryAcquire(key)).resolves.toBeNull();
    await expect(apart.tryAcquire(key)).resolves.not.toBeNull();
    expect(await world.operator.children('/shop/eu/locks')).toContain(key);
    await lock.release();
    await (await same.acquire(key)).release();
    await eventually(async () => expect(await world.operator.children('/shop/eu/locks')).toEqual([]));
  });

  it('no error tells a password, a session or an owner', async () => {
    const told: unknown[] = [];
    const observers = [
      { backendFailed: (event: unknown) => told.push(event), healthChanged: (event: unknown) => told.push(event) },
    ];
    const refused = world.service({ prefix: '/closed', credentials: OTHER }, { observers });
    const nowhere = world.service({ connectString: '127.0.0.1:1', credentials: AUTH }, { observers });
    const { proxy, service } = await world.proxied({ credentials: AUTH }, { observers });
    const backend = world.backend({ connectString: `127.0.0.1:${proxy.port}`, credentials: AUTH });
    told.push(await failureOf(refused.acquire('k')), await failureOf(nowhere.acquire('k', { waitMs: 300 })));
    proxy.pause();
    told.push(await failureOf(service.acquire('k', { waitMs: 300 })));
    const words = inspect([told, refused, nowhere, service, backend], { depth: 20, showHidden: true });
    expect(told.length).toBeGreaterThan(5);
    for (const secret of ['canary-password', digest(AUTH).split(':')[1] ?? '', Buffer.from('canary').toString('hex')]) {
      expect(words).not.toContain(secret);
    }
    const owner = await ownerName();
    for (const error of told) expect(inspect(error, { depth: 20 })).not.toContain(owner);
  });
});

/** Digest of the credentials in the form that ZooKeeper keeps in an ACL. */
function digest({ username, password }: { username: string; password: string }): string {
  return `${username}:${createHash('sha1').update(`${username}:${password}`).digest('base64')}`;
}
