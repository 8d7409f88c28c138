import { LockBackendError } from 'nestjs-distributed-lock/core';
import { Client } from 'pg';
import { atLeastMs, describeWanted, eventually, failureOf } from '../../support/index.js';
import { PgBouncer } from '../../servers/pg-bouncer.js';
import { SqlWorld } from './sql-world.js';

const STRATEGIES = ['session', 'row'] as const;

/** Without its synchronous standby, PostgreSQL confirms no commit, and keeps what the commit has locked. */
describeWanted(['postgres'], 'S15: a server whose commits wait for a lost standby, %s', () => {
  afterEach(() => setStandby(''));
  const world = SqlWorld.shared('postgres');

  /** Until the first commit waits, or none does any more: the server learns of the change in its own time. */
  const setStandby = async (name: string): Promise<void> => {
    await world.ask(`alter system set synchronous_standby_names = '${name}'`);
    await world.ask('select pg_reload_conf()');
    const client = new Client({ connectionString: world.url });
    await client.connect();
    const waits = async (): Promise<boolean> =>
      (await world.ask(`select 1 from pg_stat_activity where wait_event = 'SyncRep'`)).length > 0;
    if (name === '') await eventually(async () => !(await waits()));
    let underWay: Promise<unknown> | undefined;
    const commitWaits = async (): Promise<boolean> => {
      underWay ??= client
        .query('create table if not exists probe (n int); insert into probe values (1)')
        .finally(() => {
          underWay = undefined;
        });
      return waits();
    };
    if (name !== '') {
      await eventually(commitWaits);
      await world.ask(`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`);
    }
    await underWay;
    await client.end();
  };

  it.each(STRATEGIES)(
    'tells of the silence, and never that a key is held which nobody ever had: %s',
    async (strategy) => {
      const service = world.service({ strategy });
      await (await service.acquire('before')).release();
      await setStandby('gone');
      const answers: unknown[] = [];
      for (let attempt = 0; attempt < 3; attempt += 1) {
        answers.push(await service.tryAcquire(`never held by ${strategy}`).catch((error: unknown) => error));
      }
      expect(answers).toEqual([
        expect.any(LockBackendError),
        expect.any(LockBackendError),
        expect.any(LockBackendError),
      ]);
      expect(String(await failureOf(service.acquire(`never held by ${strategy}`, { waitMs: 30_000 })))).toMatch(
        /in time/u,
      );
      await eventually(() => service.health.status === 'down');
    },
  );

  it.each(STRATEGIES)('gives the key once the standby is back: %s', async (strategy) => {
    const service = world.service({ strategy });
    await (await service.acquire('before')).release();
    await setStandby('gone');
    expect(await failureOf(service.tryAcquire(`kept by ${strategy}`))).toBeInstanceOf(LockBackendError);
    await setStandby('');
    await (await service.acquire(`kept by ${strategy}`, { waitMs: 30_000 })).release();
  });

  it('tells of the silence behind PgBouncer, too: row', async () => {
    await using bouncer = await PgBouncer.start({ port: Number(new URL(world.url).port) }, 4);
    const service = world.service({ strategy: 'row', url: world.urlOf({ port: bouncer.port }) });
    await (await service.acquire('before')).release();
    await setStandby('gone');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(await failureOf(service.tryAcquire('never held'))).toBeInstanceOf(LockBackendError);
    }
    await setStandby('');
    await (await service.acquire('never held', { waitMs: 30_000 })).release();
  });

  it('says of a key whose commit was never confirmed that the server has it: row', async () => {
    const service = world.service({ strategy: 'row' });
    await (await service.acquire('written')).release();
    const lock = await service.acquire('written', { ttlMs: atLeastMs(1_500) });
    await setStandby('gone');
    await lock.release().catch(() => undefined);
    expect(String(await failureOf(service.tryAcquire('written')))).toMatch(
      /a session of ours \(\d+\) still has the key/u,
    );
  });

  it.each(STRATEGIES)('still says that a key is held which another process holds: %s', async (strategy) => {
    const holder = world.service({ strategy });
    const lock = await holder.acquire('held');
    const service = world.service({ strategy });
    await (await service.acquire('before')).release();
    await setStandby('gone');
    expect(await service.tryAcquire('held')).toBeNull();
    await setStandby('');
    await lock.release();
  });
});
