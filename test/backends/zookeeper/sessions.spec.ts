import { LockBackendError } from 'nestjs-distributed-lock/core';
import type { ZooKeeperMode } from 'nestjs-distributed-lock/zookeeper';
import {
  aborted,
  atLeastMs,
  describeWanted,
  eventually,
  failureOf,
  handled,
  timeLimitOf,
} from '../../support/index.js';
import { win, ZookeeperWorld } from './zookeeper-world.js';

const SESSION_MS = atLeastMs(1_200);
/** For a few sessions. */
const TIME_LIMIT_MS = timeLimitOf(300_000);
const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];

/** Rows Z1 to Z4 of docs/faults.md: connections and sessions that are lost. */
describeWanted(['zookeeper'], '%s: sessions', () => {
  const world = ZookeeperWorld.shared({ sessionTtlMs: SESSION_MS });

  it.each(MODES)('Z1: reply of create lost, %s: our node is found and adopted, not created twice', async (mode) => {
    const { proxy, service } = await world.proxied({ mode });
    for (let round = 0; round < 3; round += 1) {
      const key = world.key();
      // The server has removed the parent of a key that nobody wants; here it is there.
      await service.withLock(key, () => undefined);
      const lost = proxy.dropReplyAfter(key);
      const lock = await service.acquire(key, { waitMs: timeLimitOf(5_000) });
      await lost;
      if (mode === 'sequential') expect(await world.queue(key)).toHaveLength(1);
      await lock.release();
      await expect(world.queue(key)).resolves.toEqual([]);
      await expect(world.service({ mode }).tryAcquire(key)).resolves.not.toBeNull();
    }
  });

  it('Z1: reply of create lost by one who waits: it keeps its place', async () => {
    const { proxy, service } = await world.proxied();
    const [holder, other] = [world.service(), world.service()];
    const key = world.key();
    const lock = await holder.acquire(key);
    const lost = proxy.dropReplyAfter(key);
    const waiting = handled(service.acquire(key, { waitMs: timeLimitOf(5_000) }));
    await lost;
    const later = handled(other.acquire(key, { waitMs: timeLimitOf(5_000) }));
    await eventually(async () => expect(await world.queue(key)).toHaveLength(3));
    await lock.release();
    const second = await waiting;
    await second.release();
    const third = await later;
    expect(third.fencingToken).toBeGreaterThan(second.fencingToken);
    await third.release();
    await expect(world.queue(key)).resolves.toEqual([]);
  });

  it('Z1, Z9: reply of create lost, and nobody waits for it any more: the node goes with the reconnect', async () => {
    const { proxy, service } = await world.proxied({ sessionTtlMs: 10_000 });
    const key = world.key();
    await service.withLock(key, () => undefined);
    const lost = proxy.dropReplyAfter(key);
    const acquiring = handled(service.acquire(key, { waitMs: timeLimitOf(150) }));
    proxy.refuse();
    await lost;
    expect(await world.queue(key)).toHaveLength(1);
    await expect(failureOf(acquiring)).resolves.toBeInstanceOf(LockBackendError);
    await proxy.accept();
    await eventually(async () => expect(await world.queue(key)).toEqual([]));
  });

  it(
    'Z2: disconnected: jeopardy at once, safe again with the same session, lost by our own clock before the server ends it',
    async () => {
      // Longer than a process may stand still between two of these steps.
      const sessionTtlMs = 5 * SESSION_MS;
      const events: string[] = [];
      const note = (event: string) => () => void events.push(event);
      const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
      const { proxy, service } = await world.proxied({ sessionTtlMs }, { observers });
      const key = world.key();
      const lock = await service.acquire(key);
      proxy.reset();
      await eventually(() => events.includes('safe'));
      expect(events).toEqual(['jeopardy', 'safe']);
      expect(lock.state).toBe('held');
      proxy.refuse();
      proxy.reset();
      const cutAt = performance.now();
      await eventually(() => lock.state === 'jeopardy');
      expect(performance.now() - cutAt).toTakeLessThan(sessionTtlMs / 6);
      const toldAt = await aborted(lock.signal);
      expect(await world.queue(key)).toHaveLength(1);
      expect(toldAt - cutAt).toTakeLessThan(sessionTtlMs);
      await eventually(async () => expect(await world.queue(key)).toEqual([]));
      expect(performance.now()).toBeGreaterThan(toldAt + sessionTtlMs / 6);
      expect(events).toEqual(['jeopardy', 'safe', 'jeopardy', 'lost']);
    },
    TIME_LIMIT_MS,
  );

  it('Z3: session expired: all its locks are lost, and a new session takes nothing of the old one for its own', async () => {
    const { proxy, service } = await world.proxied();
    const keys = [world.key(), world.key(), world.key()];
    const locks = await Promise.all(keys.map((key) => service.acquire(key)));
    proxy.pause();
    await eventually(async () => expect(await world.queue(keys[0] ?? '')).toEqual([]));
    proxy.resume();
    for (const lock of locks) expect(lock.isHeld).toBe(false);
    const next = await service.acquire(keys[0] ?? '', { waitMs: timeLimitOf(5_000) });
    expect(next.fencingToken).toBeGreaterThan(locks[0]?.fencingToken ?? 0n);
    for (const lock of locks) await lock.release();
    expect(next.isHeld).toBe(true);
    expect(await world.queue(keys[0] ?? '')).toHaveLength(1);
  });

  it('Z3: a node with our name but of another session is not adopted', async () => {
    const { proxy, service } = await world.proxied();
    const key = world.key();
    await service.withLock(key, () => undefined);
    const backend = world.backend({ connectString: `127.0.0.1:${proxy.port}` });
    const before = await win(backend, key);
    // While somebody is there: the server removes an empty container.
    await world.operator.create(`/locks/${key}/1@somewhere:the-owner:0000000000`, '{}');
    await before.release();
    const lost = proxy.dropReplyAfter(key);
    const lease = await win(backend, key, { owner: 'the-owner', waitMs: timeLimitOf(5_000) });
    await lost;
    const [ours, ...others] = await world.queue(key);
    expect(others).toEqual([]);
    expect(ours).not.toMatch(/0000000000$/u);
    await expect(lease.renew()).resolves.toBe(true);
    await lease.release();
  });

  it('Z4: connections that come and go, while others do too: never two inside, and everybody gets in', async () => {
    // No session ends here, however slow its reconnects are.
    const worlds = await Promise.all(Array.from({ length: 3 }, () => world.proxied({ sessionTtlMs: 20_000 })));
    const key = world.key();
    let [inside, most, visits] = [0, 0, 0];
    const visit = async (place: number): Promise<void> => {
      const lock = await worlds[place % 3]?.service.acquire(key, { waitMs: timeLimitOf(20_000) });
      inside += 1;
      most = Math.max(most, inside);
      worlds[place % 3]?.proxy.reset();
      worlds[(place + 1) % 3]?.proxy.reset();
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(lock?.isHeld).toBe(true);
      inside -= 1;
      visits += 1;
      await lock?.release();
    };
    await Promise.all(Array.from({ length: 30 }, (_, place) => visit(place)));
    expect({ most, visits }).toEqual({ most: 1, visits: 30 });
    await eventually(async () => expect(await world.queue(key)).toEqual([]));
  });
});
