import { LockBackendError } from 'nestjs-distributed-lock/core';
import { aborted, eventually, failureOf, Gate, SLACK_MS, throughout, timeLimitOf } from '../../support/index.js';
import { serverToken } from '../../support/fencing-token.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { EtcdWorld, lineOf, wholeSecondsOf } from './etcd-world.js';
import '../../support/slow-machine.js';

/** A request is given up long before the session ends. */
const LONG = { sessionTtlMs: 10_000, requestTimeoutMs: Math.min(timeLimitOf(300), 1_000) };
/** No request is given up while a test looks at the server: only the connection ends. */
const PATIENT = { sessionTtlMs: 30_000, requestTimeoutMs: 10_000 };

describeWanted(['etcd'], 'the network, with etcd', () => {
  it('A5: request of acquire not delivered: asked again, and granted once', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(LONG);
    const sent = new Promise<void>((resolve) => void world.proxy.onRequest(() => resolve()));
    world.proxy.drop('up');
    const acquiring = service.acquire('k', { waitMs: 10_000 });
    await sent;
    world.proxy.resume();
    const lock = await acquiring;
    expect(await world.places('k')).toHaveLength(1);
    await lock.release();
    expect(await world.places('k')).toEqual([]);
  });

  it('A5: no request delivered at all: an error in time, and nothing left when the network is back', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(LONG);
    world.proxy.pause('up');
    const since = performance.now();
    const error = await failureOf(service.acquire('k', { waitMs: LONG.requestTimeoutMs }));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(LONG.requestTimeoutMs + SLACK_MS);
    world.proxy.resume();
    await (await world.service().acquire('k', { waitMs: 5_000 })).release();
    await eventually(async () => expect(await world.places('k')).toEqual([]));
  });

  it('A6: reply of acquire lost, command executed: no waiting for our own ghost, and one grant', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(PATIENT);
    world.proxy.pause('down');
    const acquiring = service.acquire('k', { waitMs: 20_000 });
    const [place] = await lineOf(world, 'k', 1);
    world.proxy.reset();
    world.proxy.resume();
    const lock = await acquiring;
    expect(await world.places('k')).toEqual([place]);
    expect(serverToken(lock.fencingToken)).toBe(await world.tokenOf(place));
    await lock.release();
    expect(await world.places('k')).toEqual([]);
  });

  it('A6: the same without waiting: asked once more on a new connection, and granted once', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(PATIENT);
    world.proxy.pause('down');
    const trying = service.tryAcquire('k');
    const [place] = await lineOf(world, 'k', 1);
    world.proxy.reset();
    world.proxy.resume();
    const lock = await trying;
    expect(await world.places('k')).toEqual([place]);
    await lock?.release();
    expect(await world.places('k')).toEqual([]);
  });

  it('A6: the same without a new connection: an error, and the ghost is gone long before its TTL', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(LONG);
    world.proxy.pause('down');
    const trying = failureOf(service.tryAcquire('k'));
    const [ghost] = await lineOf(world, 'k', 1);
    world.proxy.refuse();
    world.proxy.reset();
    await expect(trying).resolves.toBeInstanceOf(LockBackendError);
    world.proxy.resume();
    await world.proxy.accept();
    await eventually(async () => expect(await world.places('k')).toEqual([]), { withinMs: 2_000 });
    // Its deletion may have been sent twice, and the second one be late.
    const next = await service.acquire('k');
    expect((await world.places('k'))[0]?.key).not.toBe(ghost?.key);
    await next.release();
  });

  it('A6: a request that is carried out after its owner gave up comes to nothing', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxiedFirst(LONG);
    // Held until long after: as by a member that is frozen, while another one answers.
    world.proxy.pause('up');
    const lock = await service.tryAcquire('late');
    expect(await world.places('late')).toHaveLength(1);
    await lock?.release();
    expect(await world.places('late')).toEqual([]);
    world.proxy.resume();
    await throughout(500, async () => expect(await world.places('late')).toEqual([]));
  });

  it('A7: reply of release lost: the result of the work stands, nothing is reported lost, the key is free', async () => {
    await using world = await EtcdWorld.start();
    const losses: string[] = [];
    const service = await world.proxied(LONG, { observers: [{ lost: ({ key }) => losses.push(key) }] });
    const held = new Gate();
    const work = service.withLock('k', async () => {
      await lineOf(world, 'k', 1);
      world.proxy.pause('down');
      held.open();
      return 'sold';
    });
    await held.opened;
    await lineOf(world, 'k', 0);
    world.proxy.reset();
    world.proxy.resume();
    await expect(work).resolves.toBe('sold');
    expect(losses).toEqual([]);
  });

  it('A7: request of release not delivered: told, and the key is free soon after the network is back', async () => {
    await using world = await EtcdWorld.start();
    const failures: string[] = [];
    const service = await world.proxied(LONG, {
      observers: [{ backendFailed: ({ operation }) => failures.push(operation) }],
    });
    const lock = await service.acquire('k');
    world.proxy.drop();
    await lock.release();
    expect(failures).toEqual(['release']);
    expect(await world.places('k')).toHaveLength(1);
    world.proxy.resume();
    await eventually(async () => expect(await world.places('k')).toEqual([]));
  });

  it('A8: a release that arrives twice does not touch the next holder', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(LONG);
    const lock = await service.acquire('k');
    world.proxy.pause('down');
    const releasing = lock.release();
    await lineOf(world, 'k', 0);
    const next = await world.service().acquire('k');
    world.proxy.reset();
    world.proxy.resume();
    await releasing;
    await throughout(500, async () => expect(await world.places('k')).toHaveLength(1));
    expect(next.isHeld).toBe(true);
    await next.release();
  });

  it('E2: a release that is sent again deletes no newer key of the same name', async () => {
    await using world = await EtcdWorld.start();
    const service = await world.proxied(LONG);
    const lock = await service.acquire('k');
    const name = (await world.places('k'))[0]?.key ?? '';
    world.proxy.pause('down');
    const releasing = lock.release();
    await lineOf(world, 'k', 0);
    await world.operator.put(name, 'newer');
    world.proxy.reset();
    world.proxy.resume();
    await releasing;
    await throughout(500, async () => expect(await world.places('k')).toMatchObject([{ key: name }]));
  });

  it('A9: reply of acquire later than the lease: never returned as held', async () => {
    await using world = await EtcdWorld.start();
    const sessionTtlMs = wholeSecondsOf(1_000);
    const service = await world.proxied({ sessionTtlMs, requestTimeoutMs: 5 * sessionTtlMs });
    world.proxy.delay(sessionTtlMs * 1.2, 'down');
    await expect(failureOf(service.tryAcquire('k'))).resolves.toBeInstanceOf(LockBackendError);
    world.proxy.delay(0);
    await eventually(async () => expect(await world.places('k')).toEqual([]));
  });

  it('A10: a server slow to renew: the lock stays held', async () => {
    await using world = await EtcdWorld.start();
    const sessionTtlMs = wholeSecondsOf(2_000);
    const service = await world.proxied({ sessionTtlMs, requestTimeoutMs: sessionTtlMs / 2 });
    const lock = await service.acquire('k');
    // A heartbeat is two round trips, one after the other.
    world.proxy.delay(100);
    await throughout(3 * sessionTtlMs, () => expect(lock.isHeld).toBe(true));
    world.proxy.delay(0);
    await lock.release();
  });

  it('A11: renewals that fail for a while: jeopardy, then held again, and no alarm', async () => {
    await using world = await EtcdWorld.start();
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const service = await world.proxied({ sessionTtlMs: wholeSecondsOf(3_000) }, { observers });
    const lock = await service.acquire('k');
    world.proxy.refuse();
    world.proxy.reset();
    await eventually(() => lock.state === 'jeopardy');
    expect(lock.isHeld).toBe(true);
    await world.proxy.accept();
    await eventually(() => lock.state === 'held');
    expect(events).toEqual(['jeopardy', 'safe']);
    await lock.release();
  });

  it('A12: renewals that fail until the end: told by our own timer, and nothing then blocks the release', async () => {
    await using world = await EtcdWorld.start();
    const sessionTtlMs = wholeSecondsOf(1_000);
    const service = await world.proxied({ sessionTtlMs });
    const lock = await service.acquire('k');
    world.proxy.pause();
    const pausedAt = performance.now();
    expect((await aborted(lock.signal)) - pausedAt).toTakeLessThan(sessionTtlMs + SLACK_MS);
    const lostAt = performance.now();
    await lock.release();
    expect(performance.now() - lostAt).toTakeLessThan(SLACK_MS);
    const next = await world.service().acquire('k', { waitMs: timeLimitOf(5_000) });
    // All that was sent meanwhile arrives now.
    world.proxy.resume();
    await eventually(async () => expect(await service.tryAcquire('k')).toBeNull(), { withinMs: 10_000 });
    expect(next.isHeld).toBe(true);
    await next.release();
  });
});
