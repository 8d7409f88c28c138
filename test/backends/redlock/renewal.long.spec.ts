import { type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { aborted, atLeastMs, describeWanted, eventually, SLACK_MS, throughout } from '../../support/index.js';
import { leaseKeyOf } from './harness.js';
import { NODE_TIMEOUT_MS, RedlockWorld } from './redlock-world.js';
import '../../support/slow-machine.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(900);
/** Within a third of the TTL. */
const REQUEST_TIMEOUT_MS = Math.ceil((TTL_MS * 2) / 9);

describeWanted(['redlock'], 'the renewals of %s', () => {
  const world = RedlockWorld.shared();
  let events: string[];

  /** With votes of all five. */
  const hold = async (ttlMs = TTL_MS, requestTimeoutMs = REQUEST_TIMEOUT_MS): Promise<LockHandle> => {
    events = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const service = world.service({ requestTimeoutMs }, { observers });
    await service.withLock('warm-up', () => undefined);
    const lock = await service.acquire('key', { ttlMs });
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    return lock;
  };
  const drop = (nodes: readonly number[]): Promise<unknown> =>
    Promise.all(nodes.map(async (node) => world.operators[node]?.del(leaseKeyOf('key'))));

  it('R11: need a quorum: with the leases of a minority gone the lock is held on, without a doubt', async () => {
    // With two nodes that say no, each of the others has to answer.
    const lock = await hold(TTL_MS * 2, TTL_MS);
    await drop([0, 1]);
    await throughout(TTL_MS * 4, () => expect(lock.state).toBe('held'));
    expect(events).toEqual([]);
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    await lock.release();
  });

  it('R11: with those of a majority gone the loss is told with the next renewal', async () => {
    const lock = await hold(TTL_MS * 2, TTL_MS);
    await drop([0, 1, 2]);
    await aborted(lock.signal);
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    expect(events).toEqual(['lost']);
    await eventually(async () => expect(await world.leases('key')).toBe(0));
  });

  it('A11: with a majority silent the lock is in jeopardy, and safe again when one of them answers in time', async () => {
    const lock = await hold(TTL_MS * 5);
    await world.whileFrozen([0, 1, 2], async () => {
      await eventually(() => lock.state === 'jeopardy');
      await throughout(TTL_MS, () => expect(lock.isHeld).toBe(true));
      world.servers[0]?.thaw();
      await eventually(() => lock.state === 'held');
    });
    expect(events.slice(0, 2)).toEqual(['jeopardy', 'safe']);
    await lock.release();
  });

  it('A12: with a majority silent for too long the lock is lost by our own clock, and trusted no longer than it was renewed', async () => {
    const lock = await hold();
    await world.whileFrozen([0, 1, 2], async () => {
      const since = performance.now();
      expect((await aborted(lock.signal)) - since).toTakeLessThan(TTL_MS + SLACK_MS);
      expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    });
    expect(events).toEqual(['jeopardy', 'lost']);
  });

  it('a mixture of no and silence is no answer, until it is clear', async () => {
    const lock = await hold(TTL_MS * 5);
    await drop([0, 1]);
    await world.whileFrozen([2], async () => {
      await eventually(() => lock.state === 'jeopardy', { withinMs: TTL_MS * 5 });
    });
    await eventually(() => lock.state === 'held');
    await eventually(async () => expect(await world.leases('key')).toBe(5));
    await drop([0, 1, 2]);
    await aborted(lock.signal);
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    expect(events.at(-1)).toBe('lost');
  });

  it('of locks held at one time share a request to each node', async () => {
    const service = new LockService(world.backend());
    const ttlMs = atLeastMs(1_200);
    const locks = await Promise.all(Array.from({ length: 100 }, (_, i) => service.acquire(`key-${i}`, { ttlMs })));
    await eventually(async () => expect(await world.leases('key-99')).toBe(5));
    const before = await world.servers[0]?.commandStats();
    await new Promise((resolve) => setTimeout(resolve, ttlMs));
    const after = await world.servers[0]?.commandStats();
    const requests = (after?.get('evalsha') ?? 0) - (before?.get('evalsha') ?? 0);
    process.stdout.write(`  100 locks: ${requests} requests to each node in a TTL\n`);
    expect(requests).toBeGreaterThan(1);
    expect(requests).toBeLessThan(40);
    expect(locks.filter((lock) => !lock.isHeld)).toHaveLength(0);
    await service.close(NODE_TIMEOUT_MS);
  });
});
