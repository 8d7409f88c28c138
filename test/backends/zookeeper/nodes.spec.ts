import type { ZooKeeperMode } from 'nestjs-distributed-lock/zookeeper';
import { aborted, eventually, failureOf, fencingToken, Gate, handled, SLACK_MS } from '../../support/index.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { contend, win, ZookeeperWorld } from './zookeeper-world.js';

/** No test waits for its end. */
const SESSION_MS = atLeastMs(6_000);
const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];

/** Rows Z5, Z6 and Z8 to Z11 of docs/faults.md: nodes that come and go. */
describeWanted(['zookeeper'], '%s: nodes', () => {
  const world = ZookeeperWorld.shared({ sessionTtlMs: SESSION_MS });

  it.each(MODES)(
    'Z5: own node deleted by an operator, %s: told with the next life sign, and from then on at once',
    async (mode) => {
      const sessionTtlMs = atLeastMs(4_500);
      const service = world.service({ mode, sessionTtlMs });
      const key = world.key();
      const path = async (): Promise<string> => (mode === 'simple' ? `/locks/${key}` : world.holderPath(key));
      const young = await service.acquire(key);
      await world.operator.delete(await path());
      const deletedAt = performance.now();
      expect((await aborted(young.signal)) - deletedAt).toTakeLessThan((sessionTtlMs * 2) / 9 + SLACK_MS);
      expect(young.signal.reason).toMatchObject({ reason: 'revoked' });
      const watched = await world.server.metric('zk_watch_count');
      const old = await service.acquire(key);
      await eventually(async () => expect(await world.server.metric('zk_watch_count')).toBe(watched + 1));
      await world.operator.delete(await path());
      const goneAt = performance.now();
      expect((await aborted(old.signal)) - goneAt).toTakeLessThan(SLACK_MS);
      expect(old.signal.reason).toMatchObject({ reason: 'revoked' });
    },
  );

  it('Z6: the one before us leaves between our list and our watch: we look again', async () => {
    const { proxy, service } = await world.proxied();
    const key = world.key();
    const lock = await world.service().acquire(key);
    const holder = await world.holderPath(key);
    const reading = new Gate();
    const stop = proxy.onRequest((chunk) => {
      if (!chunk.includes(holder)) return;
      stop();
      proxy.pause('up');
      reading.open();
    });
    const waiting = service.acquire(key, { waitMs: 10_000 });
    await reading.opened;
    await lock.release();
    proxy.resume();
    const since = performance.now();
    await (await waiting).release();
    expect(performance.now() - since).toTakeLessThan(SLACK_MS);
  });

  it('Z6: one in the middle of the queue leaves between our list and our watch: the key is not ours for that', async () => {
    const { proxy, service } = await world.proxied();
    const key = world.key();
    const lock = await world.service().acquire(key);
    const abort = new AbortController();
    const middle = handled(world.service().acquire(key, { waitMs: 10_000, signal: abort.signal }));
    await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
    const [, beforeUs = ''] = await world.queue(key);
    const reading = new Gate();
    const stop = proxy.onRequest((chunk) => {
      if (!chunk.includes(beforeUs)) return;
      stop();
      proxy.pause('up');
      reading.open();
    });
    const waiting = service.acquire(key, { waitMs: 10_000 });
    await reading.opened;
    abort.abort(new Error('no longer'));
    await expect(failureOf(middle)).resolves.toBeInstanceOf(Error);
    await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
    const looked = new Gate();
    const holder = await world.holderPath(key);
    proxy.onRequest((chunk) => {
      if (chunk.includes(holder)) looked.open();
    });
    proxy.resume();
    await looked.opened;
    expect(service.inspect()).toEqual([]);
    await lock.release();
    await (await waiting).release();
  });

  it('Z6: one of those before us gives up: the others keep their order', async () => {
    const key = world.key();
    const lock = await world.service().acquire(key);
    const abort = new AbortController();
    const served: number[] = [];
    const waits: Promise<unknown>[] = [];
    for (let place = 0; place < 4; place += 1) {
      const signal = place === 1 ? abort.signal : new AbortController().signal;
      const waiting = world.service().acquire(key, { waitMs: 10_000, signal });
      waits.push(handled(waiting.then((next) => (served.push(place), next.release()))));
      await eventually(async () => expect(await world.queue(key)).toHaveLength(place + 2));
    }
    abort.abort(new Error('no longer'));
    await eventually(async () => expect(await world.queue(key)).toHaveLength(4));
    await lock.release();
    await Promise.allSettled(waits);
    expect(served).toEqual([0, 2, 3]);
  });

  it.each(MODES)('Z8: the token is the czxid of the node, %s', async (mode) => {
    const service = world.service({ mode });
    const key = world.key();
    const lock = await service.acquire(key);
    const node = await world.operator.read(mode === 'simple' ? `/locks/${key}` : await world.holderPath(key));
    expect(lock.fencingToken).toBe(fencingToken(node?.czxid ?? 0n));
    await lock.release();
  });

  it('Z9: abort while waiting, with the connection just lost: the node goes in the background', async () => {
    const { proxy, service } = await world.proxied({ sessionTtlMs: 10_000 });
    const key = world.key();
    const lock = await world.service().acquire(key);
    const abort = new AbortController();
    const waiting = handled(service.acquire(key, { waitMs: 10_000, signal: abort.signal }));
    await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
    proxy.refuse();
    proxy.reset();
    const reason = new Error('no longer');
    abort.abort(reason);
    await expect(failureOf(waiting)).resolves.toBe(reason);
    expect(await world.queue(key)).toHaveLength(2);
    await proxy.accept();
    await eventually(async () => expect(await world.queue(key)).toHaveLength(1));
    await lock.release();
  });

  it('Z9: release with the connection just lost: the node goes as soon as there is one again', async () => {
    const { proxy, service } = await world.proxied({ sessionTtlMs: 10_000 });
    const key = world.key();
    const lock = await service.acquire(key);
    proxy.refuse();
    proxy.reset();
    await lock.release();
    expect(await world.queue(key)).toHaveLength(1);
    await proxy.accept();
    await eventually(async () => expect(await world.queue(key)).toEqual([]));
  });

  it('Z10: the parent is removed when it is empty, and made again, in the middle of a create too', async () => {
    const key = world.key();
    const service = world.service();
    const first = await service.acquire(key);
    await first.release();
    await eventually(async () => expect(await world.operator.read(`/locks/${key}`)).toBeNull());
    const second = await service.acquire(key);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await second.release();
    const other = await world.proxied();
    const creating = new Gate();
    const stop = other.proxy.onRequest((chunk) => {
      if (!chunk.includes(key)) return;
      stop();
      other.proxy.pause('up');
      creating.open();
    });
    const acquiring = other.service.acquire(key, { waitMs: timeLimitOf(5_000) });
    await creating.opened;
    await eventually(async () => expect(await world.operator.read(`/locks/${key}`)).toBeNull());
    other.proxy.resume();
    const third = await acquiring;
    expect(third.fencingToken).toBeGreaterThan(second.fencingToken);
    await third.release();
  });

  it('Z11: "a" and "a/b" share nothing, and an operator can read every key', async () => {
    const service = world.service();
    const keys = ['a', 'a/b', 'a/../b', '.', '..', 'zookeeper', 'ü:ö', 'nul\0byte', '\u{1f512}', ' '];
    const locks = await Promise.all(keys.map((key) => service.acquire(key)));
    const names = await world.operator.children('/locks');
    expect(names.map((one) => decodeURIComponent(one))).toEqual(expect.arrayContaining(keys));
    expect(names).toEqual(expect.arrayContaining(['a', 'a%2Fb', '%2E', '%2E%2E', '%C3%BC%3A%C3%B6']));
    for (const lock of locks) await lock.release();
  });

  it('Z11: an operator sees who has a key and who waits, in order', async () => {
    const key = world.key();
    const lock = await world.service({}, { label: 'api-1' }).acquire(key);
    const waiting = world.service({}, { label: 'api-2' }).acquire(key, { waitMs: 10_000 });
    await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
    const [first = '', second = ''] = await world.queue(key);
    expect(first).toMatch(new RegExp(`^${process.pid}@api-1:[\\w-]{22}\\.\\w+:\\d{10}$`, 'u'));
    expect(second).toMatch(new RegExp(`^${process.pid}@api-2:[\\w-]{22}\\.\\w+:\\d{10}$`, 'u'));
    const node = await world.operator.read(`/locks/${key}/${first}`);
    expect(JSON.parse(node?.data?.toString() ?? '')).toMatchObject({ label: 'api-1', pid: process.pid });
    await lock.release();
    await (await waiting).release();
  });

  it('the two modes do not mix on one key, and say so', async () => {
    const key = world.key();
    const [sequential, simple] = [world.backend(), world.backend({ mode: 'simple' })];
    const one = await win(sequential, key);
    await expect(failureOf(contend(simple, key))).resolves.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      option: 'mode',
    });
    await one.release();
    await eventually(async () => expect(await world.operator.read(`/locks/${key}`)).toBeNull());
    const other = await win(simple, key);
    await expect(failureOf(contend(sequential, key))).resolves.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    await other.release();
  });
});
