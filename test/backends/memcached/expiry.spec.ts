import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { memcached } from 'nestjs-distributed-lock/memcached';
import type { MemcachedServer } from '../../servers/memcached-server.js';
import { describeWanted, eventually, timeLimitOf } from '../../support/index.js';
import { MemcachedWorld, win } from './memcached-world.js';

const TTL_MS = 2_000;
/** How long a server may keep a lease beyond its TTL: see `ServerClock`. */
const LATE_MS = 4_500;

const PROTOCOLS = ['meta', 'classic'] as const;

describeWanted(['memcached'], 'M3: the end of a lease', () => {
  it('is a date that is right to the millisecond or later, whenever it was asked for, and whenever it is renewed', async () => {
    await using world = await MemcachedWorld.start();
    const server = await TrueTime.of(world.server);
    const leftMs: number[] = [];
    // Connections that know the server's clock from one reading each, at all points between two of its ticks.
    for (let i = 0; i < 60; i += 1) {
      const backend = world.backend({ protocol: PROTOCOLS[i % 2] ?? 'auto' });
      const lease = await win(backend, `k${i}`, TTL_MS);
      leftMs.push((await dateOf(world, `k${i}`)) - server.at(lease.times.sentAt));
      const renewedAt = performance.now();
      await expect(lease.renew()).resolves.toBe(true);
      leftMs.push((await dateOf(world, `k${i}`)) - server.at(renewedAt));
      await new Promise((resolve) => setTimeout(resolve, 17));
    }
    expect(Math.min(...leftMs)).toBeGreaterThanOrEqual(TTL_MS);
    expect(Math.max(...leftMs)).toTakeLessThan(TTL_MS + timeLimitOf(LATE_MS));
  });

  it('does not come early on a server that stood still for longer than it, whoever asked meanwhile', async () => {
    await using world = await MemcachedWorld.start();
    const { server } = world;
    const backendOf = (i: number) => world.backend({ protocol: PROTOCOLS[i % 2] ?? 'auto' });
    const connected = Array.from({ length: 12 }, (__, i) => backendOf(i));
    await Promise.all(connected.map(async (backend, i) => (await win(backend, `warm-up-${i}`, TTL_MS)).release()));
    const strangers = Array.from({ length: 12 }, (__, i) => backendOf(i));
    const naive = await Promise.all(Array.from({ length: 12 }, () => RawConnection.open(server.port)));
    server.freeze();
    await new Promise((resolve) => setTimeout(resolve, TTL_MS + 1_500));
    const asked = [...connected, ...strangers].map((backend, i) => win(backend, `k${i}`, TTL_MS));
    const stored = naive.map((connection, i) => connection.ask(`set naive-${i} 0 3 1\r\nx\r\n`));
    await new Promise((resolve) => setTimeout(resolve, 300));
    server.thaw();
    const thawedAt = performance.now();
    const leases = await Promise.all(asked);
    await expect(Promise.all(stored)).resolves.toEqual(stored.map(() => 'STORED\r\n'));
    const naiveMs = await Promise.all(naive.map((__, i) => goneAt(server, `naive-${i}`, TTL_MS)));
    const ends = await Promise.all(leases.map((__, i) => goneAt(server, `lock:l:k${i}`, TTL_MS + LATE_MS)));
    const early = naiveMs.filter((end) => end - thawedAt < TTL_MS - 100).length;
    process.stdout.write(
      `of 12 items with an exptime of 3, on a server that stood still, ended within 1.9 s: ${early}\n`,
    );
    for (const connection of naive) connection.close();
    for (const [i, { times }] of leases.entries()) {
      expect(ends[i]).toBeGreaterThanOrEqual(times.sentAt + TTL_MS);
    }
  });
});

describeWanted(['memcached'], 'M3: a TTL', () => {
  it.each([
    [{ defaults: { ttlMs: 1_999 } }, 1_999],
    [{ defaults: { ttlMs: 100 } }, 100],
  ])('of less than 2 s is refused in the configuration: %j', async (options, ttlMs) => {
    await using world = await MemcachedWorld.start();
    const message = `ttlMs must be from 2000 to 2592000000 with memcached; it was ${ttlMs}`;
    expect(() => world.service({}, options)).toThrow(message);
    const service = world.service();
    await expect(service.acquire('k', { ttlMs })).rejects.toThrow(message);
    await expect(service.tryAcquire('k', { ttlMs })).rejects.toBeInstanceOf(LockConfigurationError);
  });

  it('of more than 30 days is refused, for a writer of his own service too', async () => {
    const backend = memcached({ servers: '192.0.2.1' })();
    await expect(win(backend, 'k', 30 * 86_400_000 + 1)).rejects.toBeInstanceOf(LockConfigurationError);
    await backend.close();
  });
});

/** A connection of somebody who knows only what a textbook says. */
class RawConnection {
  private constructor(private readonly socket: Socket) {}

  static async open(port: number): Promise<RawConnection> {
    const connection = new RawConnection(connect(port, '127.0.0.1'));
    await connection.ask('mn\r\n');
    return connection;
  }

  async ask(text: string): Promise<string> {
    this.socket.write(text);
    const [chunk] = (await once(this.socket, 'data')) as [Buffer];
    return chunk.toString();
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Resolves to the time when the server no longer has the item, or to `withinMs` from now. */
async function goneAt(server: MemcachedServer, name: string, withinMs: number): Promise<number> {
  const endAt = performance.now() + withinMs;
  while (performance.now() < endAt) {
    const found = await server.ask(`get ${name}`);
    if (found === 'END\r\n') break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return performance.now();
}

/** On which the lease of `key` ends, in milliseconds since 1970 by the server's clock. */
async function dateOf(world: MemcachedWorld, key: string): Promise<number> {
  const [, date] = (await world.server.ask(`get lock:l:${key}`)).split('|');
  return Number(date) * 1_000;
}

/** The server's clock between its ticks: that is the machine's monotonic one, which shows whole seconds at the same moments. */
class TrueTime {
  private constructor(private readonly offsetMs: number) {}

  static async of(server: MemcachedServer): Promise<TrueTime> {
    const shown = async () => Number((await server.statistics()).get('time'));
    const before = await shown();
    const after = await eventually(async () => {
      const now = await shown();
      expect(now).toBeGreaterThan(before);
      return now;
    });
    // It has just been set to the whole seconds of the monotonic clock.
    return new TrueTime(after * 1_000 - Math.floor(monotonicMs() / 1_000) * 1_000);
  }

  /** @param at by `performance.now()` */
  at(at: number): number {
    return monotonicMs() - (performance.now() - at) + this.offsetMs;
  }
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
