import type { LockService } from 'nestjs-distributed-lock/core';
import { eventually, timeLimitOf } from '../../support/index.js';
import { describeProtocols, MemcachedWorld, win } from './memcached-world.js';

const LONG_TTL_MS = 60_000;
const FULL = { code: 'LOCK_BACKEND', cause: { kind: 'refused' } };

describeProtocols('M4: a full server with -M, %s', (options) => {
  it('refuses another key with an error that says so, and what is held stays held and can be released', async () => {
    await using world = await MemcachedWorld.start({ args: ['-M', '-m', '2'] });
    const service = world.service(options);
    const held = await service.acquire('held', { ttlMs: LONG_TTL_MS });
    await fillUp(world);
    const refused = service.tryAcquire('k', { ttlMs: LONG_TTL_MS });
    await expect(refused).rejects.toMatchObject(FULL);
    await expect(refused).rejects.toThrow('the server refused: out of memory storing object');
    await expect(world.lease('k')).resolves.toBeUndefined();
    expect(held.isHeld).toBe(true);
    await held.release();
    await expect(world.lease('held')).resolves.toBeUndefined();
  });

  it('keeps the lease of a holder whose key another process asks for', async () => {
    await using world = await MemcachedWorld.start({ args: ['-M', '-m', '2'] });
    const [service, other] = [world.service(options), world.service(options)];
    const held = await service.acquire('held', { ttlMs: LONG_TTL_MS });
    await other.tryAcquire('other');
    const before = await world.lease('held');
    await fillUp(world);
    await expect(other.tryAcquire('held')).rejects.toMatchObject(FULL);
    await expect(world.lease('held')).resolves.toEqual(before);
    await expect(other.tryAcquire('held')).rejects.toMatchObject(FULL);
    expect(held.isHeld).toBe(true);
  });

  it('keeps a lease that it cannot renew, which is renewed when there is room again', async () => {
    await using world = await MemcachedWorld.start({ args: ['-M', '-m', '2'] });
    const lease = await win(world.backend(options), 'held');
    const before = await world.lease('held');
    await fillUp(world);
    await expect(lease.renew()).rejects.toMatchObject({ kind: 'refused' });
    await expect(world.lease('held')).resolves.toEqual(before);
    await makeRoom(world);
    await expect(lease.renew()).resolves.toBe(true);
  });

  it('keeps the permits of all holders when one more process asks', async () => {
    await using world = await MemcachedWorld.start({ args: ['-M', '-m', '2'] });
    const take = (service: LockService, waitMs = 20_000) =>
      service.acquire('pool', { limit: 3, ttlMs: LONG_TTL_MS, waitMs });
    const [first, second, third] = [world.service(options), world.service(options), world.service(options)];
    const held = [await take(first), await take(second)];
    await third.tryAcquire('other');
    const line = await world.server.ask('get lock:l:pool');
    await fillUp(world);
    await expect(take(third, timeLimitOf(300))).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await expect(world.server.ask('get lock:l:pool')).resolves.toEqual(line);
    expect(held.every(({ isHeld }) => isHeld)).toBe(true);
    await makeRoom(world);
    await (await eventually(() => take(third))).release();
  });
});

const FILLER_SIZES = Array.from({ length: 30 }, (_, i) => 30 * (i + 1));

/** Fills the memory of every size that a lease or a line of a few claims may have. */
async function fillUp({ server }: MemcachedWorld): Promise<void> {
  for (const size of FILLER_SIZES) {
    let reply = '';
    for (let i = 0; i < 100 && !reply.includes('SERVER_ERROR out of memory'); i += 1) {
      const sets = Array.from(
        { length: 1_000 },
        (_, j) => `set f-${size}-${i}-${j} 0 0 ${size}\r\n${'x'.repeat(size)}`,
      );
      reply = await server.ask(sets.join('\r\n'));
    }
    expect(reply).toContain('SERVER_ERROR out of memory');
  }
}

async function makeRoom({ server }: MemcachedWorld): Promise<void> {
  await server.ask(
    FILLER_SIZES.flatMap((size) => Array.from({ length: 9 }, (_, j) => `delete f-${size}-0-${j}`)).join('\r\n'),
  );
}
