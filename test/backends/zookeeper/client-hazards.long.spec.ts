import { readdirSync, readFileSync } from 'node:fs';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { aborted, failureOf, handled, SLACK_MS, throughout } from '../../conformance/contract.js';
import { atLeastMs, eventually, FaultProxy, freePort, spawnChild, timeLimitOf, wantedOf } from '../../support/index.js';
import { Listener } from '../../support/stand-in.js';
import type { SharedWatchApi } from './shared-watch-child.js';
import { ZookeeperWorld } from './zookeeper-world.js';

/** A quarter of it is whole milliseconds. */
const SESSION_MS = Math.ceil(atLeastMs(1_200) / 4) * 4;
/** How long a server is looked for. */
const PATIENCE_MS = 2_000;
/** 1 MB by default. */
const LONGEST_REQUEST = 100_000;

/** Hazards of node-zookeeper-client 1.1.3: one test for each, which fails without the remedy of this library. */
for (const name of wantedOf(['zookeeper'])) {
  const world = ZookeeperWorld.shared({ sessionTtlMs: SESSION_MS }, { jvm: [`-Djute.maxbuffer=${LONGEST_REQUEST}`] });

  it(`${name}: nothing but the wrapper reaches for the client`, () => {
    const directory = `${import.meta.dirname}/../../../lib/backends/zookeeper`;
    const all = readdirSync(directory, { recursive: true, encoding: 'utf8' });
    const sources = all.filter((file) => file.endsWith('.ts')).toSorted();
    const importing = sources.filter((file) =>
      /import\('node-zookeeper-client|from 'node-zookeeper-client/u.test(readFileSync(`${directory}/${file}`, 'utf8')),
    );
    expect(importing).toEqual(['transport/wire.ts']);
    const using = sources.filter((file) =>
      /connectionManager|createClient/u.test(readFileSync(`${directory}/${file}`, 'utf8')),
    );
    expect(using).toEqual(['transport/connection.ts', 'transport/single-connection-client.ts', 'transport/wire.ts']);
  });

  it('a frozen server is "connected" for ever: here an answer is due, and the holder told, before the session ends', async () => {
    const service = world.service();
    const lock = await service.acquire(world.key());
    const told = aborted(lock.signal);
    await world.server.whileFrozen(async () => {
      const frozenAt = performance.now();
      await eventually(() => service.health.status === 'down');
      expect(performance.now() - frozenAt).toTakeLessThan(SESSION_MS * (2 / 9 + 1 / 4) + SLACK_MS);
      expect((await told) - frozenAt).toTakeLessThan(SESSION_MS + SLACK_MS);
    });
    expect(service.health.detail).toMatch(new RegExp(`no answer within ${SESSION_MS / 4} ms|no handshake`, 'u'));
  });

  it('a server that accepts connections and says nothing traps it: here the next one is asked', async () => {
    const silent = await Listener.start(() => undefined);
    world.closing(silent);
    const connectString = `127.0.0.1:${silent.port},${world.server.address}`;
    // Each begins with one of the two at random.
    while (silent.accepted === 0) {
      const service = world.service({ connectString });
      await expect(service.withLock(world.key(), () => 'served', { waitMs: timeLimitOf(5_000) })).resolves.toBe(
        'served',
      );
    }
  });

  it('a server that is starting says nothing on one connection, and answers on the next: here that is soon, however long the session', async () => {
    const { proxy, service } = await world.proxied({ sessionTtlMs: 60_000 });
    const lock = await service.acquire(world.key());
    const since = performance.now();
    void proxy.delayReplyOf(/^/u, 60_000);
    proxy.reset();
    await eventually(() => lock.state === 'jeopardy');
    await eventually(() => lock.state === 'held');
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_500));
    await lock.release();
  });

  it('half a frame at the end of a connection ends the process: here it is forgotten with the connection', async () => {
    const { proxy, service } = await world.proxied();
    for (let round = 0; round < 3; round += 1) {
      const lock = await service.acquire(world.key(), { waitMs: timeLimitOf(5_000) });
      await proxy.cutMidFrame('down');
      await lock.release();
    }
  });

  it('a frame of a negative length is read without an end: here it ends the connection', async () => {
    const stranger = await Listener.start((socket) => socket.write(Buffer.from('fffffffb', 'hex')));
    const service = world.service({ connectString: `127.0.0.1:${stranger.port}` });
    try {
      await expect(service.tryAcquire(world.key())).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
      await eventually(() => expect(service.health.detail).toContain('a frame of -5 bytes'));
    } finally {
      await service.close();
      await stranger.close();
    }
  });

  it('an error code that it does not know ends the process: here it is an error, and the connection goes on', async () => {
    const enforcing = await ZookeeperWorld.start({}, { jvm: ['-Dzookeeper.enforceQuota=true'] });
    try {
      await enforcing.operator.create(
        '/zookeeper/quota/locks/zookeeper_limits',
        'count=2,bytes=-1=;byteHardLimit=-1;countHardLimit=2',
      );
      await enforcing.operator.create('/zookeeper/quota/locks/zookeeper_stats', 'count=0,bytes=0');
      const service = enforcing.service();
      const error = await failureOf(service.acquire('k'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toContain('QUOTA_EXCEEDED');
      expect(service.health.status).toBe('up');
    } finally {
      await enforcing.stop();
    }
  });

  it('what brings nonsense instead of answers is no server, and harms nobody', async () => {
    const talker = await Listener.start((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    world.closing(talker);
    const service = world.service({ connectString: `127.0.0.1:${talker.port}` });
    const error = await failureOf(service.acquire('k', { waitMs: 700 }));
    expect(error).toBeInstanceOf(LockBackendError);
  });

  it('operations queued while disconnected run late: here nothing of a given-up acquisition ever does', async () => {
    const { proxy, service } = await world.proxied();
    const key = world.key();
    const holder = await world.service().acquire(key);
    proxy.refuse();
    proxy.reset();
    await expect(failureOf(service.acquire(key, { waitMs: 200 }))).resolves.toBeInstanceOf(LockBackendError);
    await proxy.accept();
    await eventually(() => service.health.status === 'up');
    await service.withLock(world.key(), () => undefined);
    expect(await world.queue(key)).toHaveLength(1);
    await holder.release();
  });

  it('after the session has expired nothing calls back: here all that waited is told, or goes on in a new session', async () => {
    const { proxy, service } = await world.proxied();
    const [held, wanted] = [world.key(), world.key()];
    const blocking = await world.service().acquire(wanted);
    const lock = await service.acquire(held);
    const waiting = handled(service.acquire(wanted, { waitMs: Infinity }));
    await eventually(async () => expect(await world.queue(wanted)).toHaveLength(2));
    proxy.pause();
    await eventually(async () => expect(await world.queue(wanted)).toHaveLength(1));
    expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    proxy.resume();
    await eventually(async () => expect(await world.queue(wanted)).toHaveLength(2));
    await blocking.release();
    await (await waiting).release();
  });

  it('a retry at once inside a lost connection loops for ever: here reconnecting pauses, longer and longer', async () => {
    const closer = await Listener.start((socket) => socket.destroy());
    world.closing(closer);
    const service = world.service({ connectString: `127.0.0.1:${closer.port}` });
    await expect(failureOf(service.acquire('k', { waitMs: timeLimitOf(1_000) }))).resolves.toBeInstanceOf(
      LockBackendError,
    );
    await eventually(() => expect(closer.accepted).toBeGreaterThan(2));
    expect(closer.accepted).toBeLessThan(30);
  });

  it('servers that accept a connection and end it at once are tried with pauses, also when there are several', async () => {
    const proxies = [await FaultProxy.start(world.server), await FaultProxy.start(world.server)];
    for (const proxy of proxies) world.closing(proxy);
    let connections = 0;
    const healthChanged = ({ status }: { status: string }): void => {
      if (status !== 'up') return;
      connections += 1;
      for (const proxy of proxies) proxy.reset();
    };
    const connectString = proxies.map(({ port }) => `127.0.0.1:${port}`).join();
    const service = world.service({ connectString }, { observers: [{ healthChanged }] });
    await service.start();
    await throughout(1_000, () => undefined);
    await eventually(() => expect(connections).toBeGreaterThan(2));
    expect(connections).toBeLessThan(50);
  });

  it('a parent asked for as a container becomes persistent without a word: here the server removes it when it is empty', async () => {
    const key = world.key();
    await world.service().withLock(key, async () => {
      await expect(world.operator.read(`/locks/${key}`)).resolves.not.toBeNull();
    });
    await eventually(async () => expect(await world.operator.read(`/locks/${key}`)).toBeNull());
    await expect(world.operator.read('/locks')).resolves.not.toBeNull();
  });

  it('watches beyond the longest request make it flap for ever: here a connection comes back with more than that', async () => {
    const changes: string[] = [];
    const observers = [{ healthChanged: ({ status }: { status: string }) => changes.push(status) }];
    const { proxy, service } = await world.proxied({ sessionTtlMs: 15_000 }, { observers });
    const others = world.service({ sessionTtlMs: 15_000 });
    const keys = Array.from({ length: LONGEST_REQUEST / 900 }, (_, i) => `${i}-${'k'.repeat(900)}`);
    const locks = await Promise.all(keys.map((key) => others.acquire(key, { waitMs: 20_000 })));
    const waits = keys.map((key) => handled(service.acquire(key, { waitMs: 30_000 })));
    const watched = async (): Promise<number> => world.server.metric('zk_watch_count');
    await eventually(async () => expect(await watched()).toBeGreaterThanOrEqual(keys.length));
    proxy.reset();
    await eventually(() => changes.join(' ') === 'up down up');
    await Promise.all(locks.map((lock) => lock.release()));
    for (const waiting of waits) await (await waiting).release();
    expect(changes).toEqual(['up', 'down', 'up']);
  });

  it('more than ten watchers of a path warn: here they share one watch', async () => {
    const key = world.key();
    const lock = await world.service({ mode: 'simple', sessionTtlMs: 20_000 }).acquire(key);
    const before = await world.server.metric('zk_watch_count');
    const child = await spawnChild<SharedWatchApi>(new URL('./shared-watch-child.ts', import.meta.url));
    await child.call('wait', { connectString: world.server.address, key, contenders: 15 });
    expect((await world.server.metric('zk_watch_count')) - before).toBeLessThanOrEqual(2);
    await lock.release();
    await expect(child.call('served')).resolves.toBe(15);
    child.finish();
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    expect(child.stderr).toBe('');
  });

  it('bad DNS and nobody listening are silent retries for ever: here an error in time that says so', async () => {
    const port = await freePort();
    const nobody = world.service({ connectString: `127.0.0.1:${port}` });
    const since = performance.now();
    const refused = await failureOf(nobody.acquire('k', { waitMs: 300 }));
    expect(refused).toBeInstanceOf(LockBackendError);
    expect(String(refused)).toContain(`127.0.0.1:${port}: connect ECONNREFUSED`);
    await expect(failureOf(nobody.tryAcquire('k'))).resolves.toMatchObject({ code: 'LOCK_BACKEND' });
    await expect(failureOf(nobody.acquire('k', { waitMs: Infinity }))).resolves.toMatchObject({ code: 'LOCK_BACKEND' });
    expect(performance.now() - since).toTakeLessThan(300 + PATIENCE_MS + 3 * SLACK_MS);
    const nowhere = world.service({ connectString: 'no-such-host.invalid:2181' });
    const unknown = await failureOf(nowhere.acquire('k', { waitMs: 2_000 }));
    expect(String(unknown)).toMatch(/no-such-host\.invalid/u);
    expect(nowhere.health.status).toBe('down');
  });
}
