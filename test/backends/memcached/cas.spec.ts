import { aborted, atLeastMs, eventually, type Lease, timeLimitOf } from '../../support/index.js';
import { describeProtocols, MemcachedWorld, win } from './memcached-world.js';

const LONG_TTL_MS = 60_000;
/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(2_000);

describeProtocols('a cas id after a restart, %s', (options) => {
  /** A lease of before a restart and one of after it, on `k`, which have one and the same cas id. */
  async function twins(world: MemcachedWorld): Promise<{ former: Lease; present: Lease; owner: string; cas: string }> {
    const [stale, fresh] = [world.backend(options), world.backend(options)];
    await writeUntil(world, 100);
    const former = await win(stale, 'k');
    const { cas = '' } = (await world.lease('k')) ?? {};
    await world.server.restart({ empty: true });
    // Both are connected again, which takes a few ids.
    for (const backend of [stale, fresh]) await eventually(async () => (await win(backend, 'warm-up')).release());
    await writeUntil(world, Number(cas) - 1);
    const present = await win(fresh, 'k');
    const lease = await world.lease('k');
    expect(lease).toMatchObject({ cas });
    return { former, present, owner: lease?.owner ?? '', cas };
  }

  it('M6: is not used by an owner of before: his renewal and his release leave the new one’s lock alone', async () => {
    await using world = await MemcachedWorld.start();
    const { former, present, owner } = await twins(world);
    await expect(former.renew()).resolves.toBe(false);
    await former.release();
    await expect(world.lease('k')).resolves.toMatchObject({ owner });
    await expect(present.renew()).resolves.toBe(true);
    await present.release();
    await expect(world.lease('k')).resolves.toBeUndefined();
  });

  it('M6: would delete the new one’s lock if it were used: the server gives the same ids again', async () => {
    await using world = await MemcachedWorld.start();
    const { present, cas } = await twins(world);
    const [request, done] =
      options.protocol === 'meta'
        ? [`md lock:l:k C${cas}`, 'HD\r\n']
        : [`cas lock:l:k 0 -1 0 ${cas}\r\n`, 'STORED\r\n'];
    await expect(world.server.ask(request)).resolves.toBe(done);
    // And so there are two.
    const second = await win(world.backend(options), 'k', 60_000, 0);
    await expect(present.renew()).resolves.toBe(false);
    await second.release();
  });
});

describeProtocols('what somebody else writes, %s', (options) => {
  it.each([
    ['garbage', 'garbage'],
    ['nothing at all', ''],
    ['a lease of somebody’s', 'another-owner|1|{"host":"h","pid":1}'],
  ])('over a lease, %s, is a loss with the next renewal, and is not deleted by the former owner', async (_, value) => {
    await using world = await MemcachedWorld.start();
    const [service, other] = [world.service(options), world.service(options)];
    const lock = await service.acquire('k', { ttlMs: TTL_MS });
    const told = aborted(lock.signal);
    await world.server.ask(`set lock:l:k 0 0 ${value.length}\r\n${value}`);
    await told;
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    await lock.release();
    await expect(other.tryAcquire('k')).resolves.toBeNull();
    await expect(world.server.ask('get lock:l:k')).resolves.toContain(`\r\n${value}\r\n`);
  });

  it('over a lease, the lease itself, takes nothing from its owner but the cas id', async () => {
    await using world = await MemcachedWorld.start();
    const [service, other] = [world.service(options), world.service(options)];
    const lock = await service.acquire('k', { ttlMs: TTL_MS });
    const before = await world.lease('k');
    const [, value = ''] = /\r\n(?<value>.*)\r\nEND/.exec(await world.server.ask('get lock:l:k')) ?? [];
    await world.server.ask(`set lock:l:k 0 60 ${value.length}\r\n${value}`);
    const rewritten = await world.lease('k');
    expect(rewritten).toMatchObject({ owner: before?.owner });
    expect(rewritten?.cas).not.toBe(before?.cas);
    // Renewed with the cas id that it found.
    await eventually(async () => expect((await world.lease('k'))?.cas).not.toBe(rewritten?.cas));
    await expect(other.tryAcquire('k')).resolves.toBeNull();
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await expect(world.lease('k')).resolves.toBeUndefined();
  });

  it('by flush_all, is told with the next renewal, and tokens go on upwards', async () => {
    await using world = await MemcachedWorld.start();
    const [service, other] = [world.service(options), world.service(options)];
    const lock = await service.acquire('k', { ttlMs: TTL_MS });
    const told = aborted(lock.signal);
    await world.server.ask('flush_all');
    const next = await other.acquire('k', { waitMs: timeLimitOf(2_000) });
    await told;
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    await lock.release();
    expect(next.isHeld).toBe(true);
    await next.release();
  });

  it.each([
    ['text', 'forty-two'],
    ['a number that is too low', '42'],
    ['a number that is too high', '18446744073709551000'],
  ])('into a counter, %s, is an error that says so, and leaves no lock', async (_, value) => {
    await using world = await MemcachedWorld.start();
    const service = world.service(options);
    await (await service.acquire('k')).release();
    await world.server.ask(`set lock:f:k 0 0 ${value.length}\r\n${value}`);
    const refused = service.tryAcquire('k', { ttlMs: LONG_TTL_MS });
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_BACKEND', cause: { kind: 'refused' } });
    await expect(refused).rejects.toThrow(/counter of fencing tokens|non-numeric/);
    await eventually(async () => expect(await world.lease('k')).toBeUndefined());
    await world.server.ask('delete lock:f:k');
    await (await service.acquire('k')).release();
  });
});

/** Until the server's last write had the number `cas`. */
async function writeUntil({ server }: MemcachedWorld, cas: number): Promise<void> {
  const write = 'set filler 0 0 1\r\nx';
  const [, last = ''] = / 1 (?<cas>\d+)\r\n/.exec(await server.ask(`${write}\r\ngets filler`)) ?? [];
  expect(Number(last)).toBeLessThanOrEqual(cas);
  if (Number(last) < cas) await server.ask(Array.from({ length: cas - Number(last) }, () => write).join('\r\n'));
}
