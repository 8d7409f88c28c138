import { LockBackendError, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, failureOf, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { NODE_TIMEOUT_MS, RedlockWorld } from './redlock-world.js';
import '../../support/slow-machine.js';

const LONG_TTL_MS = timeLimitOf(20_000);
/** A process that stood still when the time-out was due gives its servers a quarter of it again. */
const LATEST_TIMEOUT_MS = NODE_TIMEOUT_MS * 1.25;

describeWanted(['redlock'], '%s and its quorum', () => {
  const world = RedlockWorld.shared(5, { persistent: true });

  it.each(['killed', 'frozen'] as const)('three of five %s: an error in time that names each of them', async (how) => {
    const service = world.service();
    const held = await service.acquire('held', { ttlMs: LONG_TTL_MS });
    const failing = world.servers.slice(2);
    if (how === 'killed') await Promise.all(failing.map((server) => server.kill()));
    else for (const server of failing) server.freeze();
    try {
      for (let round = 0; round < 3; round += 1) {
        const since = performance.now();
        const error = await failureOf(service.acquire('key', { waitMs: 60_000 }));
        expect(performance.now() - since).toTakeLessThan(LATEST_TIMEOUT_MS + SLACK_MS);
        expect(error).toBeInstanceOf(LockBackendError);
        const { cause } = error as LockBackendError;
        expect(cause).toBeInstanceOf(AggregateError);
        const messages = (cause as AggregateError).errors.map(String);
        for (const { port } of failing) {
          expect(messages.filter((message) => message.includes(`127.0.0.1:${port}: `))).toHaveLength(1);
        }
        for (const { port } of world.servers) expect(String(error)).toContain(`127.0.0.1:${port}`);
        await eventually(() => expect(service.health.status).toBe('down'));
      }
      expect(held.state).toBe('jeopardy');
    } finally {
      if (how === 'killed') await Promise.all(failing.map((server) => server.restart({ empty: false })));
      else for (const server of failing) server.thaw();
    }
    await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
    await eventually(() => held.state === 'held');
    await held.release();
  });

  it('a majority that another holder has is no failure, whatever the others do', async () => {
    const requestTimeoutMs = 10 * NODE_TIMEOUT_MS;
    const [ours, theirs] = [world.service({}, { label: 'ours' }), world.service({ requestTimeoutMs })];
    const lock = await ours.acquire('key', { ttlMs: LONG_TTL_MS });
    await theirs.withLock('warm-up', () => undefined);
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    await world.whileFrozen([0, 1], async () => {
      const since = performance.now();
      const error = await failureOf(theirs.acquire('key', { waitMs: 0 }));
      expect(performance.now() - since).toTakeLessThan(requestTimeoutMs);
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).toMatchObject({ holder: { label: 'ours', pid: process.pid, since: expect.any(Date) } });
    });
    await lock.release();
  });

  it('sends one command to each node to acquire, one to release, and one to be refused', async () => {
    // A request that is overdue is sent again.
    const patient = { requestTimeoutMs: 10 * NODE_TIMEOUT_MS };
    const [ours, theirs] = [world.service(patient), world.service(patient)];
    for (const service of [ours, theirs]) await service.withLock('warm-up', () => undefined);
    const before = await sent();
    for (let round = 0; round < 20; round += 1) await ours.withLock(`key-${round}`, () => undefined);
    await eventually(async () => expect(await sentSince(before)).toEqual([40, 40, 40, 40, 40]));
    const lock = await ours.acquire('key', { ttlMs: LONG_TTL_MS });
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    const held = await sent();
    for (let round = 0; round < 20; round += 1) expect(await theirs.tryAcquire('key')).toBeNull();
    await eventually(async () => expect(await sentSince(held)).toEqual([20, 20, 20, 20, 20]));
    await lock.release();
  });

  async function sent(): Promise<number[]> {
    const stats = await Promise.all(world.servers.map((server) => server.commandStats()));
    return stats.map((commands) => (commands.get('evalsha') ?? 0) + (commands.get('eval') ?? 0));
  }

  async function sentSince(before: readonly number[]): Promise<number[]> {
    return (await sent()).map((count, node) => count - (before[node] ?? 0));
  }
});
