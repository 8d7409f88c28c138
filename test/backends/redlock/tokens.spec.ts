import { randomUUID } from 'node:crypto';
import type { LockBackend } from 'nestjs-distributed-lock/core';
import {
  describeWanted,
  eventually,
  failureOf,
  Holder,
  type Lease,
  serverToken,
  win as winOn,
} from '../../support/index.js';
import { FakeWallClock } from '../../faults/fake-wall-clock.js';
import { leaseKeyOf } from './harness.js';
import { RedlockWorld } from './redlock-world.js';

const TTL_MS = 20_000;
const SECOND_US = 1_000_000;

describeWanted(['redlock'], 'the tokens of %s', () => {
  const world = RedlockWorld.shared();

  const fences = async (key: string): Promise<(number | null)[]> => {
    const found = await Promise.all(world.operators.map((operator) => operator.get(`${leaseKeyOf(key)}:f`)));
    return found.map((fence) => (fence === null ? null : Number(fence)));
  };
  const setFences = (key: string, ...all: number[]): Promise<unknown> =>
    Promise.all(all.map(async (fence, node) => world.operators[node]?.set(`${leaseKeyOf(key)}:f`, fence)));
  const clockUs = (): number => Date.now() * 1_000;

  it('R8: are what a quorum remembers, and the clock in microseconds', async () => {
    const lease = await win(world.backend(), 'key');
    const token = Number(lease.fencingToken);
    await eventually(async () => expect(await fences('key')).toEqual([token, token, token, token, token]));
    expect(Math.abs(token - clockUs())).toBeLessThan(5 * SECOND_US);
    await lease.release();
  });

  it('R8: are proposed again, greater, when nodes remember greater ones', async () => {
    const backend = world.backend();
    await (await win(backend, 'key')).release();
    const ahead = clockUs() + SECOND_US / 2;
    await setFences('key', ahead, ahead, ahead, 0, 0);
    const lease = await win(backend, 'key');
    expect(Number(lease.fencingToken)).toBe(ahead + 1);
    await lease.release();
    // Which of the nodes are heard first is not known; each quorum remembers 7 or more.
    await setFences('key', ahead, ahead + 3, ahead + 7, ahead + 8, ahead + 9);
    const next = await win(backend, 'key');
    expect(Number(next.fencingToken)).toBeGreaterThan(ahead + 7);
    expect(Number(next.fencingToken)).toBeLessThanOrEqual(ahead + 10);
  });

  it('R8: go on by ones where the clocks of the nodes were set back, and no other key is concerned', async () => {
    const backend = world.backend();
    const ahead = clockUs() + 3_600 * SECOND_US;
    await setFences('key', ahead, ahead, ahead, ahead, ahead);
    for (let round = 1; round < 5; round += 1) {
      const lease = await win(backend, 'key');
      expect(lease.fencingToken).toBe(BigInt(ahead + round));
      await lease.release();
    }
    const other = await win(backend, 'other');
    expect(Math.abs(Number(other.fencingToken) - clockUs())).toBeLessThan(5 * SECOND_US);
  });

  it.each([1, -1])('R8: do not follow the clock of a process that is %d h off', async (hours) => {
    await using clock = await FakeWallClock.start();
    await clock.set(hours);
    await using holder = await Holder.start({ backend: 'redlock', urls: world.urls }, { env: clock.env });
    const { fencingToken } = await holder.acquire('key', { ttlMs: TTL_MS });
    const token = Number(serverToken(fencingToken));
    expect(Math.abs(token - clockUs())).toBeLessThan(60 * SECOND_US);
    await holder.child.call('release', 'key');
    const lease = await win(world.backend(), 'key');
    expect(lease.fencingToken).toBeGreaterThan(serverToken(fencingToken));
  });

  it('R8: need no second round where a minority has forgotten all, and one where all have', async () => {
    const backend = world.backend();
    const warmUp = await win(backend, 'warm-up');
    // Late requests to the slowest nodes would be counted below.
    const token = Number(warmUp.fencingToken);
    await eventually(async () => expect(await fences('warm-up')).toEqual([token, token, token, token, token]));
    await warmUp.release();
    await eventually(async () => expect(await world.leases('warm-up')).toBe(0));
    await Promise.all(world.operators.slice(0, 2).map((operator) => operator.del('redlock:since')));
    const before = await asked();
    await (await win(backend, 'key')).release();
    await eventually(async () => expect((await asked()) - before).toBe(10));
    await Promise.all(world.operators.map((operator) => operator.flushall()));
    const fresh = await asked();
    const lease = await win(backend, 'key');
    await lease.release();
    expect((await asked()) - fresh).toBeGreaterThanOrEqual(13);
  });

  it('are the newer one when the same owner asks again, on every node', async () => {
    const backend = world.backend();
    const owner = randomUUID();
    const first = await win(backend, 'key', owner);
    const again = await win(backend, 'key', owner);
    expect(again.fencingToken).toBeGreaterThan(first.fencingToken);
    const token = Number(again.fencingToken);
    await eventually(async () => expect(await fences('key')).toEqual([token, token, token, token, token]));
    await expect(world.owners('key')).resolves.toEqual([owner, owner, owner, owner, owner]);
    await again.release();
    await eventually(async () => expect(await world.leases('key')).toBe(0));
  });

  it('A14: nodes whose clocks are too far from the tokens are told of, and a majority of them is an error', async () => {
    const { all, urls } = await world.proxies();
    const backend = world.backend({ urls, maxSkewMs: 100 });
    await (await win(backend, 'warm-up')).release();
    for (const proxy of all.slice(0, 2)) proxy.delay(300, 'up');
    await (await win(backend, 'key')).release();
    await eventually(() =>
      expect(backend.store.health?.current.detail).toMatch(/its clock is \d+ ms ahead of the token.*maxSkewMs \(100\)/),
    );
    for (const proxy of all.slice(2)) proxy.delay(600, 'up');
    const error = await failureOf(win(backend, 'key'));
    expect(String(error)).toMatch(/refuses the token: its clock is/);
    expect(error).toMatchObject({ code: 'LOCK_BACKEND' });
    for (const proxy of all) proxy.delay(0);
    await eventually(async () => {
      // On a busy machine a request takes longer than `maxSkewMs` now and then.
      await (await win(backend, 'key')).release();
      expect(backend.store.health?.current.detail).toBeUndefined();
    });
  });

  async function asked(): Promise<number> {
    const stats = await Promise.all(world.servers.map((server) => server.commandStats()));
    return stats.reduce((sum, commands) => sum + (commands.get('evalsha') ?? 0), 0);
  }
});

function win(backend: LockBackend, key: string, owner: string = randomUUID()): Promise<Lease> {
  return winOn(backend, key, { owner, ttlMs: TTL_MS, waitMs: 10_000 });
}
