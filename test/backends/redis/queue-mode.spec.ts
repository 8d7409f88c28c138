import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { setMaxListeners } from 'node:events';
import { LockBackendError, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { Holder } from '../../support/harness-holder.js';
import { contend, RedisWorld, win } from './redis-world.js';

/** What a waiter may be late by on a busy machine. */
const SLACK_MS = 500;
/** How long a waiter that was handed the key may be silent. */
const GRANT_MS = 5_000;

describe('redis, mode queue', () => {
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const patient = { waitMs: 20_000 };
  const child = () => Holder.start({ backend: 'redis', url: world.server.url, mode: 'queue' });

  describe('costs', () => {
    it('two commands for an uncontended acquisition and its release', async () => {
      const service = world.service();
      await service.withLock('warm', () => undefined);
      const commands = await world.commandsDuring(() => service.withLock('key', () => undefined));
      expect(commands).toEqual(['evalsha', 'evalsha']);
    });

    it('one command to learn that a key is taken', async () => {
      const [a, b] = [world.service(), world.service()];
      await a.acquire('key');
      await b.withLock('warm', () => undefined);
      const commands = await world.commandsDuring(() => b.tryAcquire('key'));
      expect(commands).toEqual(['evalsha']);
    });

    it('one read to check a sequencer', async () => {
      const [ours, theirs] = [world.service(), world.service()];
      const shown = (await ours.acquire('key')).sequencer();
      await theirs.checkSequencer(shown);
      const commands = await world.commandsDuring(() => theirs.checkSequencer(shown));
      expect(commands).toEqual(['get']);
    });

    it('four calls to renew a thousand leases', async () => {
      const backend = world.backend();
      const leases = await Promise.all(Array.from({ length: 1_000 }, (_, i) => win(backend, `key-${i}`)));
      await leases[0]?.renew();
      let renewed: boolean[] = [];
      const commands = await world.commandsDuring(async () => {
        renewed = await Promise.all(leases.map((lease) => lease.renew()));
      });
      expect(renewed).toEqual(leases.map(() => true));
      expect(commands).toEqual(['evalsha', 'evalsha', 'evalsha', 'evalsha']);
    });

    it('at most ten calls in a third of the TTL for a thousand locks that are held', async () => {
      const service = world.service();
      const ttlMs = 1_500;
      const locks = Array.from({ length: 1_000 }, (_, i) => service.acquire(`key-${i}`, { ttlMs }));
      const held = await Promise.all(locks);
      const periods = 4;
      const commands = await world.commandsDuring(
        () => new Promise((resolve) => setTimeout(resolve, (periods * ttlMs) / 3)),
      );
      expect(held.every((lock) => lock.state === 'held')).toBe(true);
      expect(commands.length).toBeGreaterThanOrEqual(4 * (periods - 1));
      expect(commands.length).toBeLessThanOrEqual(10 * periods);
    });

    it('no connection for waking up until somebody waits', async () => {
      const service = world.service();
      await service.withLock('key', () => undefined);
      await expect(world.operator.pubsub('CHANNELS', 'lock:*')).resolves.toEqual([]);
    });
  });

  describe('waiting', () => {
    it('is first come, first served over several processes', async () => {
      const holder = await world.service().acquire('key');
      const order: number[] = [];
      const waiters = [];
      for (let i = 0; i < 5; i += 1) {
        const service = world.service();
        waiters.push(service.withLock('key', () => void order.push(i), patient));
        await eventually(async () => expect(await world.waitersFor('key')).toBe(i + 1));
      }
      await holder.release();
      await Promise.all(waiters);
      expect(order).toEqual([0, 1, 2, 3, 4]);
    });

    it('lets nobody overtake, not even one who only tries', async () => {
      const holder = await win(world.backend(), 'key');
      const waiting = win(world.backend(), 'key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      // As if the lease had run out a moment ago.
      await world.operator.del('lock:{key}');
      await expect(contend(world.backend(), 'key')).resolves.toBeNull();
      await expect(waiting).resolves.toMatchObject({ ttlMs: 30_000 });
      await expect(holder.renew()).resolves.toBe(false);
    });

    it('queues a waiter once, however often it asks', async () => {
      await world.service().acquire('key', { ttlMs: 300 });
      const waiter = world.service();
      const waiting = waiter.acquire('key', patient);
      waiting.catch(() => undefined);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      // Each end of the lease that was seen last makes it ask again; the holder renews.
      const asks = await world.commandsDuring(() => new Promise((resolve) => setTimeout(resolve, 1_000)));
      expect(asks.length).toBeGreaterThan(2);
      await expect(world.waitersFor('key')).resolves.toBe(1);
      await waiter.close();
      await expect(waiting).rejects.toBeInstanceOf(LockBackendError);
    });

    it('leaves no entry behind when it times out or is given up', async () => {
      await world.service().acquire('key');
      const waiter = world.service();
      const giveUp = new AbortController();
      const aborted = waiter.acquire('key', { ...patient, signal: giveUp.signal });
      const late = world.service().acquire('key', { waitMs: 300 });
      await eventually(async () => expect(await world.waitersFor('key')).toBe(2));
      giveUp.abort(new Error('enough'));
      await expect(aborted).rejects.toThrow('enough');
      await expect(late).rejects.toBeInstanceOf(LockTimeoutError);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(0));
    });

    it('passes the key on when a waiter leaves while the grant is on its way', async () => {
      const [a, b, c] = [world.backend(), world.backend(), world.backend()];
      const holder = await win(a, 'key');
      const giveUp = new AbortController();
      const first = contend(b, 'key', { ...patient, signal: giveUp.signal });
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      const second = win(c, 'key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(2));
      const released = holder.release();
      giveUp.abort(new Error('enough'));
      await expect(first).rejects.toThrow('enough');
      await released;
      const since = performance.now();
      await second;
      expect(performance.now() - since).toBeLessThan(SLACK_MS);
    });

    it('ends with a full TTL and the token of the grant, once the waiter confirms', async () => {
      const holder = await win(world.backend(), 'key');
      const waiting = win(world.backend(), 'key', { ...patient, ttlMs: 60_000 });
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      await holder.release();
      const lease = await waiting;
      await expect(world.operator.pttl('lock:{key}')).resolves.toBeGreaterThan(50_000);
      expect(String(await world.operator.get('lock:{key}'))).toContain(`|${lease.fencingToken}|`);
    });

    it('is in time for a holder that died, whoever left the line before', async () => {
      await win(world.backend(), 'key', { ttlMs: 1_500 });
      const since = performance.now();
      const impatient = world.backend();
      const giveUp = new AbortController();
      setMaxListeners(0, giveUp.signal);
      const leaving = Array.from({ length: 12 }, () =>
        contend(impatient, 'key', { ...patient, signal: giveUp.signal }),
      );
      const left = Promise.allSettled(leaving);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(12));
      const last = win(world.backend(), 'key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(13));
      giveUp.abort(new Error('enough'));
      await left;
      await last;
      expect(performance.now() - since).toBeLessThan(1_500 + SLACK_MS);
    });

    it('does not outlive its own queue (nothing stays for ever)', async () => {
      await world.service().acquire('key');
      const waiting = world.service().acquire('key', patient);
      waiting.catch(() => undefined);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      for (const name of await world.operator.keys('*')) {
        await expect(world.operator.pttl(name)).resolves.toBeGreaterThan(0);
      }
    });

    it('names the holder, and since when', async () => {
      await world.service().acquire('key');
      const error = await world
        .service()
        .acquire('key', { waitMs: 300 })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockTimeoutError);
      const { holder } = error as LockTimeoutError;
      expect(holder).toMatchObject({ pid: process.pid });
      expect(Math.abs(Number(holder?.since) - Date.now())).toBeLessThan(5_000);
    });
  });

  describe('waiters that are gone', () => {
    it('are skipped at once when their process was killed', async () => {
      const holder = await world.service().acquire('key');
      await using victim = await child();
      const dead = victim.acquire('key', { waitMs: 60_000 });
      dead.catch(() => undefined);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      const alive = world.service().acquire('key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(2));
      await victim.kill();
      await eventually(async () => expect(await world.operator.pubsub('CHANNELS', 'lock:*')).toHaveLength(1));
      const since = performance.now();
      await holder.release();
      await alive;
      expect(performance.now() - since).toBeLessThan(SLACK_MS);
    });

    it('are skipped at once when their backend was closed', async () => {
      const holder = await world.service().acquire('key');
      const closing = world.service();
      const dead = closing.acquire('key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      const alive = world.service().acquire('key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(2));
      await Promise.all([closing.close(), expect(dead).rejects.toBeInstanceOf(LockBackendError)]);
      const since = performance.now();
      await holder.release();
      await alive;
      expect(performance.now() - since).toBeLessThan(SLACK_MS);
    });

    it('cost five seconds when they are frozen, and no more', async () => {
      const holder = await world.service().acquire('key');
      await using victim = await child();
      const frozen = victim.acquire('key', { waitMs: 60_000 });
      frozen.catch(() => undefined);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      const alive = world.service().acquire('key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(2));
      victim.child.freeze();
      const since = performance.now();
      await holder.release();
      await alive;
      const waited = performance.now() - since;
      expect(waited).toBeGreaterThan(GRANT_MS - SLACK_MS);
      expect(waited).toBeLessThan(GRANT_MS + SLACK_MS);
    });

    it('do not hide the end of a dead holder: the second in line looks too (A1)', async () => {
      await using dying = await child();
      await dying.acquire('key', { ttlMs: 1_000 });
      await using victim = await child();
      const dead = victim.acquire('key', { waitMs: 60_000 });
      dead.catch(() => undefined);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      const alive = world.service().acquire('key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(2));
      await Promise.all([dying.kill(), victim.kill()]);
      const since = performance.now();
      await alive;
      expect(performance.now() - since).toBeLessThan(1_000 + SLACK_MS);
    });
  });

  describe('faults', () => {
    it('R3: a server that forgot its scripts is told them again', async () => {
      const service = world.service();
      await service.withLock('key', () => undefined);
      const lock = await service.acquire('held');
      await world.operator.script('FLUSH');
      await service.withLock('key', () => undefined);
      await lock.release();
      expect(lock.state).toBe('released');
      await expect(world.operator.exists('lock:{held}')).resolves.toBe(0);
    });

    it('R4: tokens grow over a restart that lost everything', async () => {
      const service = world.service();
      const before = await service.withLock('key', (lock) => lock.fencingToken);
      await world.server.restart({ empty: true });
      const after = await service.withLock('key', (lock) => lock.fencingToken);
      expect(after).toBeGreaterThan(before);
    });

    it('R4: tokens grow although the clock is behind the last one', async () => {
      const ahead = 8_000_000_000_000_000;
      await world.operator.set('lock:{key}:f', String(ahead));
      const lease = await win(world.backend(), 'key');
      expect(lease.fencingToken).toBe(BigInt(ahead) + 1n);
    });

    it('A6: a lost reply of acquire is asked for again, and the ghost is ourselves', async () => {
      const proxy = await world.proxy();
      const service = world.service({ url: proxy.url });
      await service.withLock('warm', () => undefined);
      const dropped = proxy.dropReplyAfter('lock:{key}');
      const since = performance.now();
      const lock = await service.acquire('key');
      await dropped;
      expect(performance.now() - since).toBeLessThan(SLACK_MS);
      expect(lock.state).toBe('held');
      expect(BigInt(String(await world.operator.get('lock:{key}:f'))) << 10n).toBe(lock.fencingToken);
    });

    it('A7: a lost reply of release frees the key, and is no error', async () => {
      const proxy = await world.proxy();
      const service = world.service({ url: proxy.url });
      const lock = await service.acquire('key');
      const dropped = proxy.dropReplyAfter('lock:{key}');
      await lock.release();
      await dropped;
      await expect(world.operator.exists('lock:{key}')).resolves.toBe(0);
    });

    it('R10: a full server is an error, never a key that is held; what is held can be given back and handed over', async () => {
      const [a, b] = [world.service(), world.service()];
      const [lock, other] = [await a.acquire('key'), await a.acquire('other')];
      const waiting = b.acquire('key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      await world.operator.config('SET', 'maxmemory', '1');
      try {
        await expect(a.tryAcquire('third')).rejects.toThrow(/OOM/);
        await Promise.all([lock.release(), other.release()]);
        await expect(world.operator.exists('lock:{other}')).resolves.toBe(0);
        await expect((await waiting).release()).resolves.toBeUndefined();
      } finally {
        await world.operator.config('SET', 'maxmemory', '0');
      }
    });

    it('R11: a key that was deleted is told at the next renewal', async () => {
      const lock = await world.service().acquire('key', { ttlMs: 900 });
      const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
      await world.operator.del('lock:{key}');
      const since = performance.now();
      await told;
      expect(performance.now() - since).toBeLessThan(900 / 3 + SLACK_MS / 2);
      expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    });

    it('R12: a server that may not write is an error, never a key that is held', async () => {
      const service = world.service();
      await service.withLock('warm', () => undefined);
      await world.operator.call('REPLICAOF', '127.0.0.1', '1');
      try {
        await expect(service.tryAcquire('key')).rejects.toThrow(/READONLY|MASTERDOWN/);
      } finally {
        await world.operator.call('REPLICAOF', 'NO', 'ONE');
      }
    });

    it('R12: a key of another kind is an error, and no reason to lose the other leases', async () => {
      const backend = world.backend();
      const [good, bad] = [await win(backend, 'good'), await win(backend, 'bad')];
      await world.operator.del('lock:{bad}');
      await world.operator.rpush('lock:{bad}', 'x');
      await expect(contend(backend, 'bad')).rejects.toThrow(/WRONGTYPE/);
      await expect(Promise.all([good.renew(), bad.renew()])).resolves.toEqual([true, false]);
    });

    it('R14: wake-ups that are lost cost time, and no waiter', async () => {
      const holder = await win(world.backend(), 'key');
      const waiting = win(world.backend(), 'key', patient);
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      await world.operator.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      // With nobody listening, the key is set free and the entry thrown away.
      await holder.release();
      const since = performance.now();
      await waiting;
      expect(performance.now() - since).toBeLessThan(2_000);
    });

    it('R15: connections that are killed come back, and the lock stays held', async () => {
      const service = world.service();
      const lock = await service.acquire('key', { ttlMs: 1_500 });
      const statuses: string[] = [];
      service.backend.onHealthChange?.(({ status }) => void statuses.push(status));
      await world.operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await eventually(() => expect(statuses).toEqual(['down', 'up']));
      await eventually(() => expect(lock.state).toBe('held'));
      await expect(service.tryAcquire('other')).resolves.not.toBeNull();
    });
  });

  describe('keys and metadata are data', () => {
    it.each(['a}b', 'a{b}', '{', '}', '%7D', 'a}:q', 'a|b', '\n\r', "'; redis.call('FLUSHALL') --", '*', 'ü', '🔒'])(
      'R13: %j is locked, as itself and alone',
      async (key) => {
        const backend = world.backend();
        const lease = await win(backend, key);
        await expect(contend(backend, key)).resolves.toBeNull();
        for (const other of ['a', 'a}c', 'a%7Db', '%257D']) await (await win(backend, other)).release();
        await lease.release();
        await (await win(backend, key)).release();
      },
    );

    it('R13: all keys of a lock share its hash tag', async () => {
      const holder = await win(world.backend(), 'a}b{c');
      void contend(world.backend(), 'a}b{c', { waitMs: 1_000 }).catch(() => undefined);
      await eventually(async () => expect(await world.operator.keys('*')).toHaveLength(3));
      const tags = (await world.operator.keys('*')).map((name) => /\{(.*?)\}/.exec(name)?.[1]);
      expect(new Set(tags)).toEqual(new Set(['a%7Db%7Bc']));
      await holder.release();
    });

    it('a label with bars and quotes reaches who waits, through the queue too', async () => {
      const label = `a|b|"c"\\ \n ' ]] 🔒`;
      const metadata = { host: 'h|', pid: 7, label };
      const holder = await win(world.backend(), 'key');
      const next = win(world.backend(), 'key', { ...patient, metadata });
      await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
      await holder.release();
      await next;
      const seen: unknown[] = [];
      await contend(world.backend(), 'key', { blockedBy: (by) => void seen.push(by) });
      expect(seen).toEqual([expect.objectContaining(metadata)]);
    });

    it('what a stranger wrote is a key that is taken, never ours', async () => {
      await world.operator.set('lock:{key}', 'not a lease');
      await expect(contend(world.backend(), 'key')).resolves.toBeNull();
      await expect(world.operator.get('lock:{key}')).resolves.toBe('not a lease');
    });
  });
});
