import { type FailureKind, failureKindOf, type LockHandle, type LockService } from 'nestjs-distributed-lock/core';
import type { RedisMode } from 'nestjs-distributed-lock/redis';
import { eventually, timeLimitOf } from '../../support/index.js';
import { RedisWorld } from './redis-world.js';

const LONG = { ttlMs: 30_000 };

interface Trouble {
  readonly kind: FailureKind;
  /** Whether the server answers while the trouble lasts. */
  readonly says: RegExp;
  begin(world: RedisWorld): Promise<unknown> | void;
  end(world: RedisWorld): Promise<unknown> | void;
}

/** Troubles of the whole server: nobody gets a lock, and the health says so. */
const TROUBLES: readonly (readonly [string, Trouble])[] = [
  [
    'out of memory',
    {
      kind: 'refuses',
      says: /OOM/u,
      begin: ({ operator }) => operator.config('SET', 'maxmemory', '1'),
      end: ({ operator }) => operator.config('SET', 'maxmemory', '0'),
    },
  ],
  [
    'busy with a script of somebody else',
    {
      kind: 'refuses',
      says: /BUSY/u,
      begin: async (world) => {
        const { operator } = world;
        await operator.config('SET', 'busy-reply-threshold', '20');
        const stranger = world.disconnecting(operator.duplicate());
        stranger.eval('while true do end', 0).catch(() => undefined);
        await eventually(() => expect(operator.set('any', 'thing')).rejects.toThrow('BUSY'));
      },
      end: ({ operator }) => operator.script('KILL'),
    },
  ],
  [
    'a replica from now on',
    {
      kind: 'elsewhere',
      says: /READONLY|connection/u,
      begin: ({ operator }) => operator.replicaof('127.0.0.1', '1'),
      end: ({ operator }) => operator.replicaof('NO', 'ONE'),
    },
  ],
  [
    'silent',
    { kind: 'silent', says: /no answer/u, begin: ({ server }) => server.freeze(), end: ({ server }) => server.thaw() },
  ],
];

describe.each(['queue', 'plain'] as const)('what becomes of each kind of failure, mode %s', (mode: RedisMode) => {
  const world = RedisWorld.shared();

  const failureOf = async (asked: Promise<LockHandle | null>): Promise<unknown> => {
    try {
      await (await asked)?.release();
      return undefined;
    } catch (error) {
      return error;
    }
  };
  /** By nobody's call: a probe of the service's own, or the renewal of a lock. */
  const untilUp = (locks: LockService): Promise<unknown> =>
    eventually(() => expect(locks.health.status).toBe('up'), { withinMs: 10_000 });

  it.each(TROUBLES)('%s: each caller is told, the health is down, and up again by itself', async (_name, trouble) => {
    const locks = world.service({ mode, requestTimeoutMs: timeLimitOf(500), patienceMs: timeLimitOf(300) });
    const held = await locks.acquire('held', LONG);
    await trouble.begin(world);
    try {
      await eventually(
        async () => {
          const failures = await Promise.all(['a', 'b', 'c'].map((key) => failureOf(locks.tryAcquire(key))));
          expect(failures.map((failure) => String(failure))).toEqual(
            failures.map(() => expect.stringMatching(trouble.says)),
          );
          expect(failures.map(failureKindOf)).toContain(trouble.kind);
          expect(locks.health.status).toBe('down');
        },
        { withinMs: 15_000 },
      );
    } finally {
      await trouble.end(world);
    }
    await untilUp(locks);
    await eventually(() => expect(held.state).toBe('held'));
    await expect(locks.withLock('d', () => 'in', { waitMs: timeLimitOf(2_000) })).resolves.toBe('in');
    await held.release();
  });

  it("a value of somebody else's at a key: its caller is told at once, and nobody else notices", async () => {
    const bad = Array.from({ length: 5 }, (_, i) => `bad-${i}`);
    for (const key of bad) await world.operator.lpush(`lock:{${key}}`, 'a list');
    const states: string[] = [];
    const locks = world.service({ mode });
    locks.observe({ healthChanged: ({ status }) => void states.push(status) });
    await locks.withLock('warm-up', () => undefined);
    for (let round = 0; round < 10; round += 1) {
      const asked = bad.map((key) => failureOf(locks.tryAcquire(key)));
      const honest = Array.from({ length: 5 }, (_, i) => locks.withLock(`honest-${i}`, () => 'in'));
      const failures = await Promise.all(asked);
      expect(failures.map(failureKindOf)).toEqual(failures.map(() => 'value'));
      await expect(Promise.all(honest)).resolves.toEqual(honest.map(() => 'in'));
    }
    expect([locks.health, states]).toEqual([{ status: 'up' }, ['up']]);
    await world.operator.del(...bad.map((key) => `lock:{${key}}`));
  });

  it('a key that this user may not touch: the same', async () => {
    await world.operator.acl(
      'SETUSER',
      'app',
      'reset',
      'on',
      '>right',
      '~lock:{good*',
      '~lock:{nobody*',
      '&*',
      '+@all',
    );
    const locks = world.service({ mode, url: world.server.url.replace('//', '//app:right@') });
    await locks.withLock('good', () => undefined);
    for (let i = 0; i < 5; i += 1) expect(failureKindOf(await failureOf(locks.tryAcquire(`bad-${i}`)))).toBe('value');
    await expect(locks.withLock('good', () => 'in')).resolves.toBe('in');
    expect(locks.health).toEqual({ status: 'up' });
  });
});
