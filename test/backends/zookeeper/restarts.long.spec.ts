import { LockService } from 'nestjs-distributed-lock/core';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import { aborted, atLeastMs, eventually, failureOf, handled, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { ZookeeperWorld } from './zookeeper-world.js';

/** Longer than a server takes to start on a busy machine. */
const SESSION_MS = 2 * Math.ceil(Math.min(timeLimitOf(6_000), 30_000));
const TIME_LIMIT_MS = timeLimitOf(300_000);

describeWanted(['zookeeper'], '%s: restarts', () => {
  let world: ZookeeperWorld;
  afterEach(() => world.stop());

  it(
    'A27: server killed and restarted with all its data: nothing is lost, those who wait keep their place, tokens grow',
    async () => {
      world = await ZookeeperWorld.start({ sessionTtlMs: SESSION_MS });
      const events: string[] = [];
      const note = (event: string) => () => void events.push(event);
      const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
      const [ours, theirs, key] = [world.service({}, { observers }), world.service(), world.key()];
      const lock = await ours.acquire(key);
      const waiting = theirs.acquire(key, { waitMs: timeLimitOf(30_000) });
      await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
      const before = await world.queue(key);
      await world.server.restart({ empty: false });
      await eventually(() => lock.state === 'held' && events.includes('safe'));
      expect(events).toEqual(['jeopardy', 'safe']);
      await expect(world.queue(key)).resolves.toEqual(before);
      await expect(failureOf(world.service().acquire(key, { waitMs: timeLimitOf(100) }))).resolves.toMatchObject({
        code: 'LOCK_TIMEOUT',
      });
      await lock.release();
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      await next.release();
    },
    TIME_LIMIT_MS,
  );

  it(
    'A26, Z13: server killed and restarted empty: told right after the reconnect, and a new session does not wait for the old one',
    async () => {
      world = await ZookeeperWorld.start({ sessionTtlMs: SESSION_MS });
      const [ours, theirs, key] = [world.service(), world.service(), world.key()];
      const lock = await ours.acquire(key);
      const waiting = handled(theirs.acquire(key, { waitMs: timeLimitOf(30_000) }));
      await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
      const toldAt = aborted(lock.signal);
      await world.server.restart({ empty: true });
      const backAt = performance.now();
      expect((await toldAt) - backAt).toTakeLessThan(timeLimitOf(2_000));
      expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
      await lock.release();
      const next = await waiting;
      await expect(ours.tryAcquire(key)).resolves.toBeNull();
      await next.release();
      await (await ours.acquire(key)).release();
    },
    TIME_LIMIT_MS,
  );

  it(
    'Z15: server killed and restarted with all its data and a lower limit for sessions: told at once, and the next one does not wait for the old session',
    async () => {
      // The server reads them at each start.
      const settings = { maxSessionTimeout: SESSION_MS };
      world = await ZookeeperWorld.start({ sessionTtlMs: SESSION_MS }, { settings });
      const [ours, theirs, key] = [world.service(), world.service(), world.key()];
      const lock = await ours.acquire(key);
      const waiting = handled(theirs.acquire(key, { waitMs: timeLimitOf(30_000) }));
      await eventually(async () => expect(await world.queue(key)).toHaveLength(2));
      settings.maxSessionTimeout = SESSION_MS / 2;
      await world.server.restart({ empty: false });
      const backAt = performance.now();
      await eventually(() => !lock.isHeld, { withinMs: 2_000 });
      const next = await waiting;
      expect(performance.now() - backAt).toTakeLessThan(SESSION_MS);
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      await next.release();
      await (await ours.acquire(key)).release();
      const detail = expect.stringContaining(`a session of ${SESSION_MS / 2} ms of the sessionTtlMs ${SESSION_MS}`);
      expect(ours.health).toEqual({ status: 'up', detail });
    },
    TIME_LIMIT_MS,
  );

  it(
    'A23: a server frozen, killed and restarted empty leaves no unhandled rejection, and the backend closes in each state',
    async () => {
      world = await ZookeeperWorld.start();
      const sessionTtlMs = atLeastMs(1_200);
      const connectString = world.server.address;
      const open = (): LockService => new LockService(zookeeper({ connectString, sessionTtlMs }));
      const closeInTime = async (service: LockService): Promise<void> => {
        const since = performance.now();
        await service.close();
        // Two thirds of it for giving back what is held, one for ending the session.
        expect(performance.now() - since).toTakeLessThan(sessionTtlMs + SLACK_MS);
      };
      await closeInTime(open());
      const connecting = open();
      const unanswered = handled(connecting.acquire('k'));
      await closeInTime(connecting);
      await expect(failureOf(unanswered)).resolves.toMatchObject({ code: 'LOCK_SHUTDOWN' });
      const [frozen, killed, waiting] = [open(), open(), open()];
      await frozen.acquire('a');
      await killed.acquire('b');
      const forever = handled(waiting.acquire('b', { waitMs: Infinity }));
      await eventually(async () => expect(await world.queue('b')).toHaveLength(2));
      world.server.freeze();
      await closeInTime(frozen);
      world.server.thaw();
      await closeInTime(waiting);
      await expect(failureOf(forever)).resolves.toMatchObject({ code: 'LOCK_SHUTDOWN' });
      await world.server.kill();
      await eventually(() => killed.health.status === 'down');
      await closeInTime(killed);
      await world.server.launch();
    },
    TIME_LIMIT_MS,
  );

  it('close() while the connection is down ends the session over the next one, if that comes in time', async () => {
    world = await ZookeeperWorld.start({ sessionTtlMs: SESSION_MS });
    const { proxy, service } = await world.proxied();
    const key = world.key();
    await service.acquire(key);
    proxy.refuse();
    proxy.reset();
    const closing = service.backend.close();
    await proxy.accept();
    await closing;
    await expect(world.queue(key)).resolves.toEqual([]);
  });
});
