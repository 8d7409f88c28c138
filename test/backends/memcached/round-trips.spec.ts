import { LockService } from 'nestjs-distributed-lock/core';
import { atLeastMs, eventually, throughout } from '../../support/index.js';
import { describeProtocols, MemcachedWorld } from './memcached-world.js';

const COMMANDS = {
  meta: { acquire: ['add', 'ma', 'mg'], renew: ['cas', 'mg'], release: ['md'] },
  classic: { acquire: ['add', 'incr', 'gets'], renew: ['cas', 'gets'], release: ['cas'] },
} as const;

describeProtocols('requests to %s, as they go over the network', ({ protocol }, name) => {
  const { acquire, renew, release } = COMMANDS[protocol];

  it('are one to acquire, of three commands, and one to release, of one', async () => {
    await using counted = await Counted.start(protocol);
    const { service, requests } = counted;
    for (let i = 0; i < 100; i += 1) await (await service.acquire('free')).release();
    expect(requests).toEqual(Array.from({ length: 100 }, () => [acquire, release]).flat());
  });

  it('are one a question of somebody who waits, and none of somebody who does not', async () => {
    await using counted = await Counted.start(protocol);
    const { service, requests, world } = counted;
    const lock = await world.service({ protocol }).acquire('held', { ttlMs: 20_000 });
    for (let i = 0; i < 20; i += 1) await expect(service.tryAcquire('held')).resolves.toBeNull();
    expect(requests).toEqual(Array.from({ length: 20 }, () => acquire));
    await throughout(300, () => expect(requests).toHaveLength(20));
    await lock.release();
  });

  it('are one to renew, of two commands', async () => {
    await using counted = await Counted.start(protocol);
    const { service, requests } = counted;
    const lock = await service.acquire('held', { ttlMs: atLeastMs(2_000) });
    await eventually(() => requests.length >= 3);
    await lock.release();
    expect(requests.slice(0, 3)).toEqual([acquire, renew, renew]);
  });

  it('are at most 0.1 an acquisition for 100 callers of one process', async () => {
    await using counted = await Counted.start(protocol);
    const { service, requests } = counted;
    let acquired = 0;
    const caller = async (): Promise<void> => {
      for (let i = 0; i < 20; i += 1) await service.withLock('hot', () => void (acquired += 1), { waitMs: 60_000 });
    };
    await Promise.all(Array.from({ length: 100 }, caller));
    const each = requests.length / acquired;
    process.stdout.write(`${name}: requests an acquisition, 100 callers in 1 process: ${each}\n`);
    expect(acquired).toBe(2_000);
    expect(each).toBeLessThanOrEqual(0.1);
  });

  it('are at most 20 a third of the TTL to renew 1,000 locks', async () => {
    await using counted = await Counted.start(protocol);
    const { service, requests } = counted;
    const ttlMs = 6_000;
    const locks = await Promise.all(Array.from({ length: 1_000 }, (_, i) => service.acquire(`held ${i}`, { ttlMs })));
    const before = requests.length;
    const renewed = () =>
      requests
        .slice(before)
        .flat()
        .filter((command) => command === renew[0]).length;
    await eventually(() => renewed() >= 2_000, { withinMs: 10_000 });
    const rounds = renewed() / 1_000;
    const each = (requests.length - before) / rounds;
    process.stdout.write(`${name}: requests a third of the TTL, 1,000 locks held: ${each}\n`);
    expect(each).toBeLessThanOrEqual(20);
    expect(locks.every((lock) => lock.isHeld)).toBe(true);
    await Promise.all(locks.map((lock) => lock.release()));
  });
});

/** A service whose requests are read on their way. */
class Counted implements AsyncDisposable {
  /** The commands of each write. */
  readonly requests: string[][] = [];

  private constructor(
    readonly world: MemcachedWorld,
    readonly service: LockService,
  ) {}

  static async start(protocol: 'meta' | 'classic'): Promise<Counted> {
    const world = await MemcachedWorld.start();
    const { proxy, servers } = await world.proxy();
    const counted = new Counted(world, world.service({ servers, protocol }));
    // The connection, and with the classic commands the beginning of the counters, are not counted.
    for (const key of ['free', 'hot', 'held']) await (await counted.service.acquire(key)).release();
    proxy.onRequest((chunk) => counted.requests.push(commandsIn(chunk.toString())));
    return counted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}

function commandsIn(text: string): string[] {
  return Array.from(
    text.matchAll(/^(?<command>mg|ma|md|add|cas|gets|incr|stats) /gm),
    ({ groups }) => groups?.['command'] ?? '',
  );
}
