import { atLeastMs, describeWanted, eventually, Gate, handled, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { TICK_MS } from '../../servers/zookeeper-server.js';
import { type Child, spawnChild } from '../../support/processes.js';
import type { ContendersApi } from './contenders-child.js';
import { RefusingProxy } from './refusing-proxy.js';
import { win, ZookeeperWorld } from './zookeeper-world.js';

/** From the moment when the network forgets a connection: a beat, a silence, and the way to another server. */
const NOTICED_MS = 6_000;
const SILENCE_MS = 3_000;
const SHORT_SILENCE_MS = timeLimitOf(300);

describeWanted(['zookeeper'], '%s: those who fall silent without a word', (name) => {
  // Long enough that nobody is saved by the end of a session.
  const world = ZookeeperWorld.shared({ sessionTtlMs: 60_000 });

  it('a waiter whose connection the network has forgotten gets a key that becomes free', async () => {
    const { proxy } = await world.proxied();
    const backend = world.backend({ connectString: `127.0.0.1:${proxy.port}` });
    const changes: string[] = [];
    backend.store.health?.onChange(({ status, detail = '' }) => changes.push(`${status} ${detail}`));
    const key = world.key();
    const lock = await world.service().acquire(key);
    const inLine = new Gate();
    const waiting = handled(win(backend, key, { waitMs: 25_000, onBlocked: inLine.open }));
    await inLine.opened;
    proxy.forget();
    await lock.release();
    const since = performance.now();
    const next = await waiting;
    const tookMs = performance.now() - since;
    process.stdout.write(`${name}: released to a waiter behind a black hole after ${Math.round(tookMs)} ms\n`);
    expect(tookMs).toTakeLessThan(NOTICED_MS + SLACK_MS);
    expect(changes.join(';')).toMatch(/^up [^;]*;down [^;]*no answer within 3000 ms[^;]*;up /u);
    await next.release();
  });

  it.each([
    ['by default', SILENCE_MS, {}],
    ['by requestTimeoutMs', SHORT_SILENCE_MS, { requestTimeoutMs: SHORT_SILENCE_MS }],
  ])('whoever does not wait gets a free key on a forgotten connection: after a silence %s', async (_, ms, options) => {
    const { proxy, service } = await world.proxied(options);
    proxy.forget();
    const since = performance.now();
    const lock = await service.tryAcquire(world.key());
    expect(performance.now() - since).toTakeLessThan(ms + 2 * SLACK_MS);
    expect(lock?.isHeld).toBe(true);
    await lock?.release();
  });

  it('whoever does not wait is told that a key is held although the network has forgotten the connection', async () => {
    const { proxy, service } = await world.proxied();
    const key = world.key();
    const lock = await world.service().acquire(key);
    proxy.forget();
    await expect(service.tryAcquire(key)).resolves.toBeNull();
    await eventually(async () => expect(await world.queue(key)).toHaveLength(1));
    await lock.release();
  });

  it.each(['sequential', 'simple'] as const)(
    'a waiter who is not told of a release looks by himself: %s',
    async (mode) => {
      const proxy = world.closing(await RefusingProxy.start(world.server));
      const service = world.service({ connectString: `127.0.0.1:${proxy.port}`, mode });
      const key = world.key();
      const lock = await world.service({ mode }).acquire(key);
      proxy.losesNotifications = true;
      const waiting = handled(service.acquire(key, { waitMs: 25_000 }));
      await eventually(async () => expect(await world.server.metric('zk_watch_count')).toBe(1));
      await lock.release();
      const since = performance.now();
      await (await waiting).release();
      expect(performance.now() - since).toTakeLessThan(5_000 + SLACK_MS);
      expect(proxy.lost).toBe(1);
    },
  );
});

describeWanted(['zookeeper'], '%s: processes that are stopped while they wait', (name) => {
  const sessionTtlMs = atLeastMs(3_000);
  const children: Child<ContendersApi>[] = [];
  afterEach(() => Promise.all(children.splice(0).map((child) => child.kill())));
  const world = ZookeeperWorld.shared({ sessionTtlMs });

  it.each([1, 2, 3, 5])(
    '%i of them in front of a live one do not keep the key from it',
    async (frozen) => {
      const key = world.key();
      const lock = await world.service().acquire(key);
      for (let place = 1; place <= frozen; place += 1) {
        const child = await spawnChild<ContendersApi>(new URL('./contenders-child.ts', import.meta.url));
        children.push(child);
        await child.call('contend', {
          connectString: world.server.address,
          mode: 'sequential',
          key,
          count: 1,
          sessionTtlMs,
        });
      }
      const waiting = handled(world.service().acquire(key, { waitMs: 25_000 }));
      await eventually(async () => expect(await world.queue(key)).toHaveLength(frozen + 2));
      for (const child of children) child.freeze();
      await lock.release();
      const since = performance.now();
      const next = await waiting;
      const tookMs = performance.now() - since;
      process.stdout.write(
        `${name}: ${frozen} stopped, session ${sessionTtlMs} ms: ${Math.round(tookMs)} ms after the release\n`,
      );
      expect(tookMs).toTakeLessThan(sessionTtlMs + TICK_MS + timeLimitOf(1_000));
      await next.release();
    },
    timeLimitOf(300_000),
  );
});
