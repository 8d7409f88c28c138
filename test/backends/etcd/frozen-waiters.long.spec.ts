import { describeWanted, handled, Holder, timeLimitOf } from '../../support/index.js';
import { EtcdWorld, lineOf, wholeSecondsOf } from './etcd-world.js';
import '../../support/slow-machine.js';

const TTL_MS = wholeSecondsOf(2_000);
/** etcd looks for leases that have ended twice a second, and a busy machine is slow. */
const LATE_MS = timeLimitOf(1_000);

describeWanted(['etcd'], 'processes that are frozen while they wait', () => {
  const waiters: Holder[] = [];
  afterEach(() => Promise.all(waiters.splice(0).map((waiter) => waiter.kill())));

  it.each([1, 2, 3, 5])('%d of them: whoever is next has the key when all their leases have ended', async (frozen) => {
    await using world = await EtcdWorld.start();
    const connection = {
      backend: 'etcd',
      endpoints: world.server.urls,
      sessionTtlMs: TTL_MS,
    } as const;
    const [holder, live] = [world.service(), world.service({ sessionTtlMs: 10_000 })];
    const lock = await holder.acquire('k');
    while (waiters.length < frozen) waiters.push(await Holder.start(connection));
    for (const waiter of waiters) void handled(waiter.acquire('k', { waitMs: 60_000 }));
    await lineOf(world, 'k', frozen + 1, 10_000);
    const waiting = live.acquire('k', { waitMs: 60_000 });
    await lineOf(world, 'k', frozen + 2);
    for (const { child } of waiters) child.freeze();
    const since = performance.now();
    await lock.release();
    const next = await waiting;
    const tookMs = performance.now() - since;
    process.stdout.write(`etcd: ${frozen} frozen before it: has the key ${Math.round(tookMs)} ms after the release\n`);
    expect(tookMs).toTakeLessThan(TTL_MS + LATE_MS);
    await next.release();
  });
});
