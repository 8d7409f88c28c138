import { setMaxListeners } from 'node:events';
import { LockShutdownError, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { atLeastMs, eventually, Holder, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { AT_ONCE_MS, contend, describeRedis, win } from './redis-world.js';

/** How long a waiter that was handed the key may be silent. */
const GRANT_MS = 5_000;

describeRedis('waiting in redis, mode queue', (world) => {
  const patient = { waitMs: 20_000 };
  const child = () => Holder.start({ backend: 'redis', url: world.server.url, mode: 'queue' });

  describe('waiting', () => {
    it('is first come, first served over several processes', async () => {
      const holder = await world.service().acquire('key');
      const order: number[] = [];
      const waiters = [];
      for (let i = 0; i < 5; i += 1) {
        const service = world.service();
        waiters.push(service.withLock('key', () => void order.push(i), patient));
        await world.untilWaiting('key', i + 1);
      }
      await holder.release();
      await Promise.all(waiters);
      expect(order).toEqual([0, 1, 2, 3, 4]);
    });

    it('lets nobody overtake, not even one who only tries', async () => {
      const holder = await win(world.backend(), 'key');
      const waiting = win(world.backend(), 'key', patient);
      await world.untilWaiting('key', 1);
      // As if the lease had run out a moment ago.
      await world.operator.del('lock:{key}');
      await expect(contend(world.backend(), 'key')).resolves.toBeNull();
      await expect(waiting).resolves.toMatchObject({ ttlMs: 30_000 });
      await expect(holder.renew()).resolves.toBe(false);
    });

    it('queues a waiter once, however often it asks', async () => {
      await world.service().acquire('key', { ttlMs: timeLimitOf(600) });
      const waiter = world.service();
      const waiting = waiter.acquire('key', patient);
      waiting.catch(() => undefined);
      await world.untilWaiting('key', 1);
      // Each end of the lease that was seen last makes it ask again; the holder renews.
      const asks = await world.commandsDuring(() => new Promise((resolve) => setTimeout(resolve, timeLimitOf(2_000))));
      expect(asks.length).toBeGreaterThan(2);
      await expect(world.waitersFor('key')).resolves.toBe(1);
      await waiter.close();
      await expect(waiting).rejects.toBeInstanceOf(LockShutdownError);
    });

    it('leaves no entry behind when it times out or is given up', async () => {
      await world.service().acquire('key');
      const waiter = world.service();
      const caller = new AbortController();
      const aborted = waiter.acquire('key', { ...patient, signal: caller.signal });
      const late = world.service().acquire('key', { waitMs: timeLimitOf(300) });
      await world.untilWaiting('key', 2);
      caller.abort(new Error('enough'));
      await expect(aborted).rejects.toThrow('enough');
      await expect(late).rejects.toBeInstanceOf(LockTimeoutError);
      await world.untilWaiting('key', 0);
    });

    it('passes the key on when a waiter leaves while the grant is on its way', async () => {
      const [a, b, c] = [world.backend(), world.backend(), world.backend()];
      const holder = await win(a, 'key');
      const caller = new AbortController();
      const first = contend(b, 'key', { ...patient, signal: caller.signal });
      await world.untilWaiting('key', 1);
      const second = win(c, 'key', patient);
      await world.untilWaiting('key', 2);
      const released = holder.release();
      caller.abort(new Error('enough'));
      await expect(first).rejects.toThrow('enough');
      await released;
      const since = performance.now();
      await second;
      expect(performance.now() - since).toTakeLessThan(AT_ONCE_MS);
    });

    it('ends with a full TTL and the token of the grant, once the waiter confirms', async () => {
      const holder = await win(world.backend(), 'key');
      const waiting = win(world.backend(), 'key', { ...patient, ttlMs: 60_000 });
      await world.untilWaiting('key', 1);
      await holder.release();
      const lease = await waiting;
      await expect(world.operator.pttl('lock:{key}')).resolves.toBeGreaterThan(50_000);
      expect(String(await world.operator.get('lock:{key}'))).toContain(`|${lease.fencingToken}|`);
    });

    it('is in time for a holder that died, whoever left the line before', async () => {
      const ttlMs = atLeastMs(3_000);
      await win(world.backend(), 'key', { ttlMs });
      const since = performance.now();
      const impatient = world.backend();
      const caller = new AbortController();
      setMaxListeners(0, caller.signal);
      const leaving = Array.from({ length: 12 }, () =>
        contend(impatient, 'key', { ...patient, signal: caller.signal }),
      );
      const left = Promise.allSettled(leaving);
      await world.untilWaiting('key', 12);
      const last = win(world.backend(), 'key', patient);
      await world.untilWaiting('key', 13);
      caller.abort(new Error('enough'));
      await left;
      await last;
      expect(performance.now() - since).toTakeLessThan(ttlMs + SLACK_MS);
    });

    it('does not outlive its own queue (nothing stays for ever)', async () => {
      await world.service().acquire('key');
      const waiting = world.service().acquire('key', patient);
      waiting.catch(() => undefined);
      await world.untilWaiting('key', 1);
      for (const name of await world.operator.keys('*')) {
        await expect(world.operator.pttl(name)).resolves.toBeGreaterThan(0);
      }
    });

    it('names the holder, and since when', async () => {
      await world.service().acquire('key');
      const error = await world
        .service()
        .acquire('key', { waitMs: timeLimitOf(300) })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockTimeoutError);
      const { holder } = error as LockTimeoutError;
      expect(holder).toMatchObject({ pid: process.pid });
      expect(Math.abs(Number(holder?.since) - Date.now())).toBeLessThan(5_000);
    });
  });

  describe('waiters that are gone', () => {
    it('are skipped at once when their process was killed', async () => {
      const holder = await world.service().acquire('key');
      await using victim = await child();
      const dead = victim.acquire('key', { waitMs: 60_000 });
      dead.catch(() => undefined);
      await world.untilWaiting('key', 1);
      const alive = world.service().acquire('key', patient);
      await world.untilWaiting('key', 2);
      const channels = await world.operator.pubsub('CHANNELS', 'lock:*');
      await victim.kill();
      await eventually(async () =>
        expect(await world.operator.pubsub('CHANNELS', 'lock:*')).toHaveLength(channels.length - 1),
      );
      const since = performance.now();
      await holder.release();
      await alive;
      expect(performance.now() - since).toTakeLessThan(AT_ONCE_MS);
    });

    it('are skipped at once when their backend was closed', async () => {
      const holder = await world.service().acquire('key');
      const closing = world.service();
      const dead = closing.acquire('key', patient);
      await world.untilWaiting('key', 1);
      const alive = world.service().acquire('key', patient);
      await world.untilWaiting('key', 2);
      await Promise.all([closing.close(), expect(dead).rejects.toBeInstanceOf(LockShutdownError)]);
      const since = performance.now();
      await holder.release();
      await alive;
      expect(performance.now() - since).toTakeLessThan(AT_ONCE_MS);
    });

    it('cost five seconds when they are frozen, and no more', async () => {
      const holder = await world.service().acquire('key');
      await using victim = await child();
      const frozen = victim.acquire('key', { waitMs: 60_000 });
      frozen.catch(() => undefined);
      await world.untilWaiting('key', 1);
      const alive = world.service().acquire('key', patient);
      await world.untilWaiting('key', 2);
      victim.child.freeze();
      const since = performance.now();
      await holder.release();
      await alive;
      const waited = performance.now() - since;
      expect(waited).toBeGreaterThan(GRANT_MS - SLACK_MS);
      expect(waited).toTakeLessThan(GRANT_MS + AT_ONCE_MS);
    });

    it('do not hide the end of a dead holder: the second in line looks too (A1)', async () => {
      await using dying = await child();
      const ttlMs = atLeastMs(1_000);
      await dying.acquire('key', { ttlMs });
      await using victim = await child();
      const dead = victim.acquire('key', { waitMs: 60_000 });
      dead.catch(() => undefined);
      await world.untilWaiting('key', 1);
      const alive = world.service().acquire('key', patient);
      await world.untilWaiting('key', 2);
      await Promise.all([dying.kill(), victim.kill()]);
      const since = performance.now();
      await alive;
      expect(performance.now() - since).toTakeLessThan(ttlMs + SLACK_MS);
    });
  });

  it('tells the first waiter that listens when a dead holder is evicted, and leaves nothing for ever', async () => {
    await world.operator.set('lock:{key}', 'dead|1|', 'PX', 60_000);
    await world.operator.rpush('lock:{key}:q', 'dead-waiter');
    await world.operator.hset('lock:{key}:w', 'dead-waiter', `nobody|${Date.now()}|30000|`);
    const waiting = world.service().acquire('key', { waitMs: 10_000 });
    await world.untilWaiting('key', 2);
    await new Promise((resolve) => setTimeout(resolve, 200));
    await world.operator.persist('lock:{key}:w');
    const since = performance.now();
    await world.service().evict('key');
    expect(await world.operator.pttl('lock:{key}:w')).toBeGreaterThan(0);
    await waiting;
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_500));
  });

  it('opens a key that was closed by a clock which was set back', async () => {
    await world.operator.rpush('lock:{key}:q', 'dead-waiter');
    await world.operator.hset('lock:{key}:w', '', -(Date.now() + 3_600_000));
    await world.service().acquire('key', { waitMs: timeLimitOf(1_000) });
  });

  it('grants a key whose fence has a text that is no number', async () => {
    await world.operator.set('lock:{key}:f', 'no number');
    expect((await world.service().acquire('key')).fencingToken).toBeGreaterThan(0n);
  });
});
