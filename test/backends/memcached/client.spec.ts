import { LockBackendError } from 'nestjs-distributed-lock/core';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import type { Commands } from '../../../lib/backends/memcached/transport/pipeline.js';
import type { MemcachedConnection } from '../../../lib/backends/memcached/transport/connection.js';
import { MetaDialect } from '../../../lib/backends/memcached/meta-dialect.js';
import { ServerClock } from '../../../lib/backends/memcached/server-clock.js';
import { getServerAdvice } from '../../../lib/backends/memcached/server-statistics.js';
import { VerifiedConnection } from '../../../lib/backends/memcached/verified-connection.js';
import { aborted, atLeastMs, describeWanted, eventually, timeLimitOf } from '../../support/index.js';
import { MemcachedWorld } from './memcached-world.js';
import { Terminator, TLS } from './terminator.js';

describeWanted(['memcached'], 'the %s backend as a client', () => {
  it('takes the meta commands where it can, and classic ones on the same keys where it is told to', async () => {
    await using world = await MemcachedWorld.start();
    const { proxy, servers } = await world.proxy();
    const seen: string[] = [];
    proxy.onRequest((chunk) => seen.push(chunk.toString()));
    const [auto, meta, classic] = [
      world.service({ servers }),
      world.service({ protocol: 'meta' }),
      world.service({ protocol: 'classic' }),
    ];
    for (const [ours, ...others] of [
      [auto, meta, classic],
      [meta, classic, auto],
      [classic, auto, meta],
    ] as const) {
      const lock = await ours.acquire('k', { ttlMs: 20_000 });
      for (const other of others) await expect(other.tryAcquire('k')).resolves.toBeNull();
      await lock.release();
    }
    expect(seen.join('')).toMatch(/^mg lock:l:k /m);
    expect(seen.join('')).not.toMatch(/^(incr|gets) lock:[lf]/m);
  });

  it.each(['a\r\nflush_all\r\n', 'k\r\ndelete sentinel\r\n', ' ', '\0', 'caf\u00e9 \u{1f512}', 'x'.repeat(251)])(
    'M5: makes no command of a key, a label or an owner: %j',
    async (hostile) => {
      await using world = await MemcachedWorld.start();
      await world.server.ask('set sentinel 0 0 2\r\nok');
      for (const protocol of ['meta', 'classic'] as const) {
        const [holder, other] = [world.service({ protocol }, { label: hostile }), world.service({ protocol })];
        const lock = await holder.acquire(hostile, { ttlMs: 20_000 });
        await expect(other.acquire(hostile, { waitMs: 0 })).rejects.toMatchObject({ holder: { label: hostile } });
        await lock.release();
        await (await other.acquire(hostile)).release();
      }
      await expect(world.server.ask('get sentinel')).resolves.toContain('\r\nok\r\n');
      expect((await world.server.statistics()).get('cmd_flush')).toBe('0');
    },
  );

  it('is told of a restart that lost everything right after its connection is back', async () => {
    await using world = await MemcachedWorld.start();
    const service = world.service();
    const lock = await service.acquire('k', { ttlMs: 60_000 });
    const told = aborted(lock.signal);
    await world.server.kill();
    await eventually(() => service.health.status === 'down');
    expect(lock.state).toBe('jeopardy');
    await world.server.restart({ empty: true });
    const backAt = performance.now();
    expect((await told) - backAt).toTakeLessThan(timeLimitOf(1_500));
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  });

  it('settles everything on a frozen server in time, and nothing of it is left when the server goes on', async () => {
    await using world = await MemcachedWorld.start();
    const requestTimeoutMs = timeLimitOf(200);
    const service = world.service({ requestTimeoutMs });
    await (await service.acquire('warm-up')).release();
    world.server.freeze();
    const since = performance.now();
    await expect(service.tryAcquire('k', { ttlMs: 60_000 })).rejects.toThrow(`no answer within ${requestTimeoutMs} ms`);
    await expect(service.acquire('k', { ttlMs: 60_000, waitMs: 2 * requestTimeoutMs })).rejects.toBeInstanceOf(
      LockBackendError,
    );
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_500));
    world.server.thaw();
    await eventually(async () => expect(await world.lease('k')).toBeUndefined());
    await eventually(async () => (await service.acquire('k', { waitMs: 0 })).release());
  });

  it('says in its health what an operator should change, and nothing when there is nothing', async () => {
    await using evicting = await MemcachedWorld.start();
    await using fine = await MemcachedWorld.start({ args: ['-M'] });
    for (const world of [evicting, fine]) await (await world.service().acquire('warm-up')).release();
    const [warned, content] = [evicting.service(), fine.service()];
    expect([warned.health, content.health]).toEqual([{ status: 'idle' }, { status: 'idle' }]);
    for (const service of [warned, content]) await (await service.acquire('k')).release();
    expect(content.health).toEqual({ status: 'up' });
    expect(warned.health).toEqual({
      status: 'up',
      detail: expect.stringMatching(
        /^127\.0\.0\.1:\d+: it was not started with -M, so .* \(0\.0 of 16 MB in use, 0 evictions so far\)$/,
      ),
    });
    const value = 'x'.repeat(1_000_000);
    for (let i = 0, reply = 'STORED\r\n'; reply === 'STORED\r\n'; i += 1) {
      reply = await fine.server.ask(`set filler-${i} 0 0 ${value.length}\r\n${value}`);
    }
    const late = fine.service();
    await (await late.acquire('k')).release();
    expect(late.health.detail).toMatch(/it is nearly full, and then it refuses locks \(1\d of 16 MB in use/);
  });

  it('says that it is a proxy, as memcached 1.6.45 tells it', () => {
    expect(getServerAdvice(new Map(), new Map([['proxy_enabled', 'yes']]))).toContain('it is a proxy');
  });

  it('reads the server’s clock again after half a minute, once for all who ask', async () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const found = new Map([['time', '1800000060']]);
    const link = {
      exchange: async (...commands: Commands<readonly unknown[]>) => {
        const [text = ''] = commands.map((command) => command.text);
        if (text.startsWith('mg ')) return [{ value: 'one server', cas: '1' }];
        asked.push(text);
        return [found];
      },
    };
    const serverClock = new ServerClock(1_800_000_000, clock.now(), clock.now());
    const dialect = new MetaDialect(link as unknown as MemcachedConnection);
    const connection = new VerifiedConnection(
      link as unknown as MemcachedConnection,
      dialect,
      serverClock,
      new Map(),
      { prefix: 'lock', serverListText: 'one server' },
      undefined,
      clock,
    );
    await clock.advance(29_999);
    await connection.refreshClock();
    expect(asked).toEqual([]);
    await clock.advance(1);
    await Promise.all([connection.refreshClock(), connection.refreshClock()]);
    await connection.refreshClock();
    expect(asked).toEqual(['stats\r\n']);
    expect(serverClock.exptimeAfter(2_000, clock.now())).toBe(1_800_000_065);
    serverClock.invalidate();
    await connection.refreshClock();
    expect(asked).toHaveLength(2);
  });

  it('speaks TLS, with a key that both sides know', async () => {
    await using world = await MemcachedWorld.start();
    await using terminator = await Terminator.start(world.server.port);
    const service = world.service({ servers: `127.0.0.1:${terminator.port}`, tls: TLS });
    const lock = await service.acquire('k', { ttlMs: atLeastMs(2_000) });
    await expect(world.service().tryAcquire('k')).resolves.toBeNull();
    await lock.release();
    world.server.freeze();
    await expect(service.tryAcquire('k')).rejects.toThrow('no answer within 1000 ms');
    world.server.thaw();
    await eventually(async () => (await service.acquire('k', { waitMs: 0 })).release());
    await service.close();
  });
});
