import type { LockService } from 'nestjs-distributed-lock/core';
import {
  atLeastMs,
  describeWanted,
  endAfterEach,
  eventually,
  Holder,
  SLACK_MS,
  throughout,
  timeLimitOf,
} from '../../support/index.js';
import { describeServers, LISTENERS, SqlWorld } from './sql-world.js';

const LONG_TTL_MS = 60_000;
/** When a waiter looks who has come before, at the earliest. */
const NEXT_LOOK_MS = timeLimitOf(2_500);
/** The beginning of that statement, or of its name. */
const LOOK = /with.locked.as/u;
/** By then whoever waits has a key that became free. */
const PROMISED_MS = 5_000 + timeLimitOf(1_000);
const STATEMENT_MS = atLeastMs(2_000);

/** Firewalls, load balancers and the like forget connections without telling anybody; new ones work. */
describeServers('connections that the network has forgotten', (world) => {
  it.each(['lease', 'row', 'session'] as const)(
    'do not keep whoever does not wait from a free key, however many there are: %s',
    async (strategy) => {
      const service = await world.proxied({ strategy, requestTimeoutMs: STATEMENT_MS });
      const locks = await Promise.all(['a', 'b', 'c'].map((key) => service.acquire(`crowd-${key}`)));
      await Promise.all(locks.map((lock) => lock.release()));
      for (let round = 0; round < 2; round += 1) {
        world.proxy.forget();
        const since = performance.now();
        const lock = await service.tryAcquire(`forgotten-${strategy}-${round}`, { ttlMs: LONG_TTL_MS });
        // One statement shows the silence; a second connection may not.
        expect(performance.now() - since).toTakeLessThan(2 * STATEMENT_MS);
        expect(lock?.isHeld).toBe(true);
        await lock?.release();
      }
      expect(service.health.status).toBe('up');
      expect(service.health.detail).toMatch(/silent and has been replaced.*forgetting idle connections/u);
    },
  );

  it('are no news when a quiet session was replaced before', async () => {
    // The server ends it when it was quiet for all of that, and a busy machine is late for the next lock.
    const sessionTtlMs = atLeastMs(4_000);
    const service = await world.proxied({ strategy: 'session', sessionTtlMs });
    await (await service.acquire('before')).release();
    const states: string[] = [];
    service.backend.health.onChange(({ status }) => states.push(status));
    // A session that was quiet for half its TTL is replaced. Its farewell gets no answer.
    await new Promise((resolve) => setTimeout(resolve, sessionTtlMs * 0.6));
    world.proxy.forget();
    await (await service.acquire('after')).release();
    await throughout(400, () => expect(service.health.status).toBe('up'));
    expect(states).toEqual([]);
  });

  it('cost no lock that is held', async () => {
    const lost: string[] = [];
    const observers = [{ lost: ({ key }: { readonly key: string }) => lost.push(key) }];
    const service = await world.proxied({ locks: { observers } });
    const locks = await Promise.all(['a', 'b', 'c'].map((key) => service.acquire(`held-${key}`, { ttlMs: 9_000 })));
    world.proxy.forget();
    await eventually(() => expect(service.health.detail).toContain('replaced'), { withinMs: 8_000 });
    await Promise.all(locks.map((lock) => lock.release()));
    expect(lost).toEqual([]);
  });
});

describeWanted(['postgres'], 'those who wait for a message, %s', (type) => {
  const keep = endAfterEach((waiter: Holder) => waiter.kill());
  const world = SqlWorld.shared(type);

  const inLine = async (key: string, waiters: number): Promise<void> => {
    const line = 'select cardinality(waiting) as waiters from distributed_lock where lock_key = $1';
    await eventually(async () => expect(await world.ask(line, [key])).toEqual([{ waiters }]), { withinMs: 10_000 });
  };
  /** Who has a connection already that listens. */
  const listening = async (waiter: LockService): Promise<void> => {
    const holder = world.service();
    const lock = await holder.acquire('listening', { ttlMs: LONG_TTL_MS });
    const heard = waiter.acquire('listening', { ttlMs: LONG_TTL_MS });
    await inLine('listening', 1);
    await eventually(async () => expect((await world.ask(LISTENERS)).length).toBeGreaterThan(0));
    await lock.release();
    await (await heard).release();
  };
  const timeToGet = async (release: () => Promise<void>, waiting: ReturnType<LockService['acquire']>) => {
    const since = performance.now();
    await release();
    await (await waiting).release();
    return performance.now() - since;
  };

  it('get the key within seconds when the connection that listens is forgotten, and listen again', async () => {
    const [holder, waiter] = [world.service(), await world.proxied()];
    await listening(waiter);
    const took: number[] = [];
    for (let round = 0; round < 2; round += 1) {
      const lock = await holder.acquire('deaf', { ttlMs: LONG_TTL_MS });
      const waiting = waiter.acquire('deaf', { ttlMs: LONG_TTL_MS, waitMs: 20_000 });
      await inLine('deaf', 1);
      if (round === 0) world.proxy.forget();
      took.push(await timeToGet(() => lock.release(), waiting));
    }
    process.stdout.write(`listener forgotten: ${took.map((ms) => `${ms.toFixed(0)} ms`).join(', then ')}\n`);
    expect(took[0]).toTakeLessThan(PROMISED_MS);
    expect(took[1]).toTakeLessThan(SLACK_MS);
    expect(waiter.health.status).toBe('up');
    expect(waiter.health.detail).toContain('the connection that listens for releases');
  });

  it('notice a connection that was forgotten before they came as soon as they come', async () => {
    const [holder, waiter] = [world.service(), await world.proxied()];
    await listening(waiter);
    world.proxy.forget();
    // For so long nobody trusts a connection on which nothing was said.
    await throughout(3_500, () => undefined);
    // The other connections are forgotten, too.
    await (await waiter.acquire('awake')).release();
    const lock = await holder.acquire('short', { ttlMs: LONG_TTL_MS });
    const looked = new Promise<void>((resolve) =>
      world.proxy.onRequest((chunk) => LOOK.test(chunk.toString('latin1')) && resolve()),
    );
    const since = performance.now();
    const waiting = waiter.acquire('short', { ttlMs: LONG_TTL_MS, waitMs: 20_000 });
    await looked;
    expect(performance.now() - since).toTakeLessThan(NEXT_LOOK_MS);
    await inLine('short', 1);
    await lock.release();
    await (await waiting).release();
  });

  it.each([1, 2, 3, 5])(
    'get the key within seconds behind %i that are frozen',
    async (frozen) => {
      const key = `behind-${frozen}`;
      const [holder, live] = [world.service(), world.service()];
      await listening(live);
      const lock = await holder.acquire(key, { ttlMs: LONG_TTL_MS });
      for (let place = 1; place <= frozen; place += 1) {
        const waiter = keep(await Holder.start({ backend: type, url: world.url }));
        waiter.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 60_000 }).catch(() => undefined);
        await inLine(key, place);
        waiter.child.freeze();
      }
      const waiting = live.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 30_000 });
      await inLine(key, frozen + 1);
      const took = await timeToGet(() => lock.release(), waiting);
      process.stdout.write(`behind ${frozen} frozen: ${took.toFixed(0)} ms\n`);
      expect(took).toTakeLessThan(PROMISED_MS);
    },
    timeLimitOf(300_000),
  );

  it.each(['silent', 'gone'])(
    'get the key before a newcomer, and within seconds, behind twelve that are %s',
    async (state) => {
      const [holder, live, newcomer] = [world.service(), world.service(), world.service()];
      await listening(live);
      const lock = await holder.acquire(state, { ttlMs: LONG_TTL_MS });
      for (let place = 1; place <= 12; place += 1) {
        const waiter = world.service({ url: world.proxiedUrl });
        waiter.acquire(state, { ttlMs: LONG_TTL_MS, waitMs: 60_000 }).catch(() => undefined);
        await inLine(state, place);
      }
      const order: string[] = [];
      const visit = async (who: string, service: LockService): Promise<void> =>
        service.withLock(state, () => void order.push(who), { ttlMs: LONG_TTL_MS, waitMs: 30_000 });
      const visits = [visit('live', live)];
      await inLine(state, 13);
      world.proxy.drop();
      if (state === 'gone') world.proxy.reset();
      const since = performance.now();
      await lock.release();
      visits.push(visit('newcomer', newcomer));
      await visits[0];
      const took = performance.now() - since;
      process.stdout.write(`behind twelve that are ${state}: ${took.toFixed(0)} ms\n`);
      await Promise.all(visits);
      expect(order).toEqual(['live', 'newcomer']);
      expect(took).toTakeLessThan(PROMISED_MS);
    },
  );

  it('are not named to everybody who may listen: an owner is a secret', async () => {
    const [holder, waiter] = [world.service(), world.service()];
    await listening(waiter);
    const heard: string[] = [];
    const stop = await world.hear('distributed_lock', (payload) => heard.push(payload));
    const lock = await holder.acquire('named', { ttlMs: LONG_TTL_MS });
    const waiting = waiter.acquire('named', { ttlMs: LONG_TTL_MS });
    await inLine('named', 1);
    const [row] = await world.ask(
      `select substr(waiting[1], 15) as owner from distributed_lock where lock_key = 'named'`,
    );
    await lock.release();
    await (await waiting).release();
    await eventually(() => heard.length > 0);
    await stop();
    expect(heard.join()).not.toContain(String(row?.['owner']));
  });
});
