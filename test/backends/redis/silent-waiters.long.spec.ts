import { Redis } from 'ioredis';
import { createConnection } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { eventually, RedisServer, timeLimitOf } from '../../support/index.js';
import { AT_ONCE_MS, describeRedis, win } from './redis-world.js';

/** However many others are silent, and whatever became of the subscription. */
const LATEST_MS = 5_000 + timeLimitOf(2_000);
/** Just longer than the queue waits for a sign of life: `MAX_WAITER_SILENCE_MS` of its scripts. */
const PASSED_OVER_MS = 4_900;

describeRedis('waiters that are not told, redis, mode queue', (world) => {
  const patient = { waitMs: 60_000 };

  /** In line one after the other, before one that lives. */
  async function lineUp(count: number, url: string) {
    const services = Array.from({ length: count }, () => world.service({ url }));
    for (const [place, service] of services.entries()) {
      service.acquire('key', patient).catch(() => undefined);
      await world.untilWaiting('key', place + 1);
    }
    const alive = world.service().acquire('key', patient);
    await world.untilWaiting('key', count + 1);
    alive.catch(() => undefined);
    return { alive };
  }

  /** A client whose subscription is another one's: of another server, or on another way to the same. */
  function withSubscriptionAt(url: string): LockService {
    const client = world.disconnecting(new Redis(world.server.url));
    const duplicate = (options: object) => new Redis(url, options);
    return world.closing(new LockService(redis({ client: Object.assign(client, { duplicate }) })));
  }

  async function untilGiven(waiting: Promise<unknown>): Promise<number> {
    const since = performance.now();
    await waiting;
    return performance.now() - since;
  }

  it('end with their time where they want several keys, however long an answer may take', async () => {
    const locks = world.service({ requestTimeoutMs: 60_000 });
    await (await locks.acquireAll(['a', 'b'])).release();
    await world.server.whileFrozen(async () => {
      await expect(locks.acquireAll(['a', 'b'], { waitMs: 150 })).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    });
    await eventually(async () => (await locks.acquireAll(['a', 'b'], { waitMs: 10_000 })).release());
  });

  /** Resolves to the code of the rejection, which must come long before the store's own time-out. */
  const codeOfEarly = (waiting: Promise<unknown>): Promise<unknown> =>
    Promise.race([
      waiting.catch((error: unknown) => Reflect.get(Object(error), 'code')),
      setTimeout(30_000, 'still waiting', { ref: false }),
    ]);

  it.each(['its time is over', 'it is aborted'])('end when %s, also with one of several keys in hand', async (end) => {
    const [locks, other] = [world.service({ requestTimeoutMs: 60_000 }), world.service()];
    const busy = await other.acquire('b', { ttlMs: 60_000 });
    const controller = new AbortController();
    const limits =
      end === 'it is aborted' ? { waitMs: 60_000, signal: controller.signal } : { waitMs: timeLimitOf(1_000) };
    const waiting = locks.acquireAll(['a', 'b'], { ttlMs: 60_000, ...limits });
    waiting.catch(() => undefined);
    await world.untilWaiting('b', 1);
    await world.server.whileFrozen(async () => {
      controller.abort(Object.assign(new Error('gone'), { code: 'ABORTED' }));
      expect(await codeOfEarly(waiting)).toMatch(
        end === 'it is aborted' ? /^ABORTED$/u : /^LOCK_(?:TIMEOUT|BACKEND)$/u,
      );
    });
    await busy.release();
    await eventually(async () => (await other.acquireAll(['a', 'b'], { waitMs: 10_000 })).release());
  });

  it('end with their time if they get their turn when it is over', async () => {
    const locks = world.service({ requestTimeoutMs: 60_000 });
    const held = await locks.acquire('key', { awaitRelease: false });
    // Another `ttlMs` excludes that the lease is handed over.
    const waiting = locks.acquire('key', { waitMs: 30, ttlMs: 20_000 });
    waiting.catch(() => undefined);
    await world.server.whileFrozen(async () => {
      const since = performance.now();
      while (performance.now() - since < 60);
      void held.release();
      expect(await codeOfEarly(waiting)).toMatch(/^LOCK_(?:TIMEOUT|BACKEND)$/u);
    });
    await eventually(async () => (await locks.acquire('key', { waitMs: 10_000 })).release());
  });

  it.each([1, 2, 3, 5])(`%d of them that are frozen cost the next one no more than ${LATEST_MS} ms`, async (count) => {
    const holder = await win(world.backend(), 'key');
    const proxy = await world.proxy();
    const { alive } = await lineUp(count, proxy.url);
    // Their subscriptions still count.
    proxy.pause();
    await holder.release();
    const took = await untilGiven(alive);
    process.stdout.write(`  ${count} frozen waiters before a live one: it has the key after ${took.toFixed(0)} ms\n`);
    expect(took).toTakeLessThan(LATEST_MS);
  });

  it('keep their places when they come back in time', async () => {
    const holder = await win(world.backend(), 'key');
    const proxy = await world.proxy();
    const order: string[] = [];
    const visit = (who: string, url: string) =>
      world.service({ url, patienceMs: 2 * LATEST_MS }).withLock('key', () => void order.push(who), patient);
    const visits: Promise<void>[] = [];
    for (const [who, url] of Object.entries({ a: proxy.url, b: proxy.url, c: world.server.url })) {
      visits.push(visit(who, url));
      await world.untilWaiting('key', visits.length);
    }
    proxy.pause();
    // As a holder that dies: nobody hands the key over. After 5 s of silence they would connect anew.
    await world.operator.pexpire('lock:{key}', PASSED_OVER_MS);
    await eventually(() => expect(order).toEqual(['c']), { withinMs: 2 * LATEST_MS });
    proxy.resume();
    await Promise.all(visits);
    expect(order).toEqual(['c', 'a', 'b']);
    await holder.release();
  });

  it('are skipped at once when they are gone, also while a monitoring tool subscribes to everything', async () => {
    const monitor = world.disconnecting(new Redis(world.server.url));
    await monitor.psubscribe('*');
    const holder = await win(world.backend(), 'key');
    const proxy = await world.proxy();
    const { alive } = await lineUp(4, proxy.url);
    proxy.refuse();
    proxy.reset();
    await eventually(async () => expect(await world.operator.pubsub('CHANNELS', 'lock:*')).toHaveLength(1));
    await holder.release();
    expect(await untilGiven(alive)).toTakeLessThan(AT_ONCE_MS);
  });

  it('poll where the server does not count them among its subscribers, and health says so', async () => {
    await using elsewhere = await stoppable(RedisServer.start());
    const holder = await win(world.backend(), 'key');
    const deaf = withSubscriptionAt(elsewhere.server.url);
    const waiting = deaf.acquire('key', patient);
    await eventually(() => expect(deaf.health.detail).toContain('nobody has subscribed'));
    await holder.release();
    expect(await untilGiven(waiting)).toTakeLessThan(AT_ONCE_MS);
  });

  it('find a key that became free although their subscription died unseen; it is replaced, and health says so', async () => {
    const holder = await win(world.backend(), 'key');
    const proxy = await world.proxy();
    const deaf = withSubscriptionAt(proxy.url);
    const waiting = deaf.acquire('key', patient);
    await world.untilWaiting('key', 1);
    proxy.forget();
    await holder.release();
    const took = await untilGiven(waiting);
    process.stdout.write(`  a subscription that died unseen: the key is taken after ${took.toFixed(0)} ms\n`);
    expect(took).toTakeLessThan(LATEST_MS);

    const other = await win(world.backend(), 'other');
    const again = deaf.acquire('other', patient);
    await eventually(() => expect(deaf.health.detail).toContain('no sign of life'), { withinMs: 2 * LATEST_MS });
    await eventually(() => expect(deaf.health).toEqual({ status: 'up' }), { withinMs: 2 * LATEST_MS });
    await other.release();
    expect(await untilGiven(again)).toTakeLessThan(AT_ONCE_MS);
  });

  it('are woken at once by the holder of a key that was deleted by hand', async () => {
    const holder = await win(world.backend(), 'key');
    const waiting = win(world.backend(), 'key', patient);
    await world.untilWaiting('key', 1);
    await world.operator.del('lock:{key}');
    await holder.release();
    expect(await untilGiven(waiting)).toTakeLessThan(AT_ONCE_MS);
  });

  it('give a key back at once that is handed to one who has left, because a question of his arrived late', async () => {
    const holder = await win(world.backend(), 'key');
    const proxy = await world.proxy();
    const questions: Buffer[] = [];
    proxy.onRequest((chunk) => chunk.includes('lock:{key}') && questions.push(chunk));
    const leaving = world.service({ url: proxy.url });
    await expect(leaving.acquire('key', { waitMs: timeLimitOf(1_000) })).rejects.toThrow('still held');
    await world.untilWaiting('key', 0);
    const late = questions.findLast((chunk) => chunk.includes('"pid"'));
    const socket = createConnection(world.server.port, '127.0.0.1');
    socket.end(late ?? '');
    await world.untilWaiting('key', 1);
    const alive = win(world.backend(), 'key', patient);
    await world.untilWaiting('key', 2);
    await holder.release();
    expect(await untilGiven(alive)).toTakeLessThan(AT_ONCE_MS);
  });

  it('leave the last token behind for an hour, and nothing else', async () => {
    const holder = await win(world.backend(), 'key');
    const waiting = win(world.backend(), 'key', patient);
    await world.untilWaiting('key', 1);
    await holder.release();
    await (await waiting).release();
    await expect(world.operator.keys('*')).resolves.toEqual(['lock:{key}:f']);
    expect(await world.operator.pttl('lock:{key}:f')).toBeLessThan(3_600_000 + 60_000);
  });
});

async function stoppable(starting: Promise<RedisServer>): Promise<AsyncDisposable & { readonly server: RedisServer }> {
  const server = await starting;
  return { server, [Symbol.asyncDispose]: () => server.stop() };
}
