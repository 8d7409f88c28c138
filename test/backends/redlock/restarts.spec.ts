import { aborted, atLeastMs, describeWanted, eventually, failureOf, timeLimitOf } from '../../support/index.js';
import { RedlockWorld } from './redlock-world.js';

const LONG_TTL_MS = 20_000;

describeWanted(['redlock'], '%s and nodes that restart empty', () => {
  let world: RedlockWorld;
  beforeEach(async () => {
    world = await RedlockWorld.start(3);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const forget = (...nodes: number[]): Promise<unknown> =>
    Promise.all(nodes.map(async (node) => world.servers[node]?.restart({ empty: true })));

  it('R7: a minority changes nothing: the lock is held on, and nobody else has it', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const ttlMs = atLeastMs(1_500);
    const lock = await ours.acquire('key', { ttlMs });
    await eventually(async () => expect(await world.leases('key')).toBe(3));
    await forget(0);
    await eventually(() => expect(ours.health.detail).toBeUndefined());
    await new Promise((resolve) => setTimeout(resolve, (ttlMs * 4) / 3));
    expect(lock.state).toBe('held');
    await expect(theirs.tryAcquire('key')).resolves.toBeNull();
    await lock.release();
  });

  it('R7: a majority lets a second holder in, with a greater token, and the first is told right after the reconnect', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('key', { ttlMs: LONG_TTL_MS });
    await forget(0, 1);
    const backAt = performance.now();
    const next = await eventually(() => theirs.acquire('key', { ttlMs: LONG_TTL_MS, waitMs: 0 }));
    expect((await aborted(lock.signal)) - backAt).toTakeLessThan(timeLimitOf(3_000));
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await lock.release();
    expect(next.isHeld).toBe(true);
    await next.release();
  });

  it('R7: with a quarantine nobody gets in before the first lease is over', async () => {
    const ttlMs = atLeastMs(5_000);
    const options = { restartQuarantineMs: ttlMs };
    const [ours, theirs] = [world.service(), world.service(options)];
    const lock = await ours.acquire('key', { ttlMs, watchdog: false });
    const lost = aborted(lock.signal);
    await forget(0, 1);
    // Until both are back there is no quorum to speak of.
    await eventually(async () => {
      const error = await failureOf(theirs.acquire('key', { waitMs: 0 }));
      expect(String(error)).toMatch(new RegExp(`(started \\d s ago, and does not vote for ${ttlMs} ms.*){2}`, 'u'));
    });
    const next = await eventually(() => theirs.acquire('key', { waitMs: 0 }), { withinMs: 20_000 });
    expect(await lost).toBeLessThan(performance.now());
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await next.release();
  });

  it('R8: tokens grow over a restart of all of them, at once and again', async () => {
    const service = world.service();
    let newest = 0n;
    for (let round = 0; round < 4; round += 1) {
      const token = await eventually(() => service.withLock('key', (lock) => lock.fencingToken));
      expect(token).toBeGreaterThan(newest);
      newest = token;
      await forget(0, 1, 2);
    }
  });

  it('R8: tokens grow when all data is deleted in between, faster than clocks go on', async () => {
    const service = world.service();
    let newest = 0n;
    for (let round = 0; round < 20; round += 1) {
      const token = await service.withLock('key', (lock) => lock.fencingToken);
      expect(token).toBeGreaterThan(newest);
      newest = token;
      await Promise.all(world.operators.map((operator) => operator.flushall()));
    }
  });
});
