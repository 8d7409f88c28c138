import { LockBackendError, LockHandle } from 'nestjs-distributed-lock/core';
import { aborted, atLeastMs, describeWanted, eventually, throughout, timeLimitOf } from '../../support/index.js';
import { SqlWorld } from './sql-world.js';

const ADVICE = /locks need a database that takes writes, and not a replica or one that is read-only/u;
/** Servers count whole seconds. */
const TTL_MS = Math.ceil(atLeastMs(6_000) / 1_000) * 1_000;
const STRATEGIES = ['session', 'row'] as const;

/** After a switch-over the former primary runs on, read-only, with every connection open. */
describeWanted(['postgres', 'mariadb'], 'S14: a server that takes no more writes, %s', (type) => {
  afterEach(() => takeWrites(true));
  const world = SqlWorld.shared(type);

  const takeWrites = async (allowed: boolean): Promise<void> => {
    if (type === 'mariadb') {
      await world.ask(`set global read_only = ${allowed ? 0 : 1}`);
      return;
    }
    await world.ask(`alter system set default_transaction_read_only = ${allowed ? 'off' : 'on'}`);
    await world.ask('select pg_reload_conf()');
  };

  it.each(STRATEGIES)(
    'is noticed by the holder, whose connection stays open, within a renewal: %s',
    async (strategy) => {
      const service = world.service({ strategy, ...(strategy === 'session' && { sessionTtlMs: TTL_MS }) });
      const lock = await service.acquire('held', { ttlMs: TTL_MS });
      const told = aborted(lock.signal);
      const since = performance.now();
      await takeWrites(false);
      const took = (await told) - since;
      process.stdout.write(`${type} ${strategy}: told ${took.toFixed(0)} ms after the switch-over, TTL ${TTL_MS} ms\n`);
      expect(took).toTakeLessThan((TTL_MS * 2) / 3);
      expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
      expect(lock.isHeld).toBe(false);
      expect(service.health).toMatchObject({ status: 'down', detail: expect.stringMatching(ADVICE) });
      await takeWrites(true);
      await eventually(() => service.health.status === 'up', { withinMs: 5_000 });
      await lock.release();
      await (await service.acquire('held')).release();
    },
  );

  it('is up again with it, though a connection from before became idle meanwhile: row', async () => {
    const service = world.service({ strategy: 'row' });
    const earlier = await service.acquire('earlier', { ttlMs: 60_000 });
    const told = aborted((await service.acquire('told', { ttlMs: TTL_MS })).signal);
    await takeWrites(false);
    await told;
    await earlier.release().catch(() => undefined);
    // Longer than the longest pause between two probes.
    await throughout(timeLimitOf(2_500), () => expect(service.health.status).toBe('down'));
    await takeWrites(true);
    await eventually(() => service.health.status === 'up');
  });

  it.each(STRATEGIES)('gives no lock over a connection from before: %s', async (strategy) => {
    const service = world.service({ strategy });
    await (await service.acquire('before')).release();
    await takeWrites(false);
    // PostgreSQL tells its sessions one by one: until then ours may still write.
    const refused = async (): Promise<void> => {
      const answer = await service.tryAcquire('after').catch((error: unknown) => error);
      if (answer instanceof LockHandle) await answer.release();
      expect(answer).toBeInstanceOf(LockBackendError);
      expect(String(answer)).toMatch(ADVICE);
    };
    await (type === 'postgres' ? eventually(refused) : refused());
    await takeWrites(true);
    await (await service.acquire('after', { waitMs: 10_000 })).release();
  });
});
