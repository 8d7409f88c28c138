import { randomUUID } from 'node:crypto';
import { Deadline, LockBackendError, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { aborted, atLeastMs, eventually, failureOf, handled, serverToken, throughout } from '../../support/index.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { BLOCKED_SESSIONS_SQL } from '../sql/blocked-sessions.js';
import { ExistingTableWorld } from './existing-table-world.js';
import { LIST_MS } from './operators.js';

const TTL_MS = 20_000;

describeWanted(['postgres', 'mariadb', 'sqlite'], 'a table of an older program, %s', (type) => {
  const world = ExistingTableWorld.shared(type);

  /** How an older row gets its age. */
  const age = async (method: string, ms: number): Promise<void> => {
    const before = {
      postgres: `now() - interval '${ms} milliseconds'`,
      mariadb: `now(6) - interval ${ms * 1_000} microsecond`,
      sqlite: `datetime('now', '-${ms / 1_000} seconds')`,
    };
    await world.ask(`update method_lock set update_time = ${before[type]} where method_name = ?`, [method]);
  };

  it('holds what an older program holds, says who, and gets it when that program has deleted its row', async () => {
    const service = world.service();
    expect(await world.insert('Report.run')).toBe(true);
    await expect(service.tryAcquire('Report.run')).resolves.toBeNull();
    const error = await failureOf(service.acquire('Report.run', { waitMs: 1_000 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({ holder: { host: 'client-7', pid: 0, since: expect.any(Date) } });
    const { holder } = error as LockTimeoutError;
    expect(Math.abs((holder?.since?.getTime() ?? 0) - Date.now())).toBeLessThan(10_000);
    const waiting = service.acquire('Report.run');
    await world.delete('Report.run');
    await (await waiting).release();
  });

  const nowUs = {
    postgres: 'floor(extract(epoch from clock_timestamp()) * 1000000)::bigint::text',
    mariadb: `timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))`,
  };

  if (type === 'postgres') {
    it('lists the keys of a column whose collation knows no case, and keeps them apart as that does', async () => {
      const column = (collation: string): string =>
        `alter table method_lock alter column method_name type varchar(700) collate ${collation}`;
      await world.ask(`create collation no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
      await world.ask(column('no_case'));
      const service = world.service();
      const lock = await service.acquire('Report.run');
      await expect(service.tryAcquire('report.RUN')).resolves.toBeNull();
      const keys: string[] = [];
      for await (const key of service.keys()) keys.push(key);
      expect(keys).toEqual(['Report.run']);
      await lock.release();
      await world.ask(column('"default"'));
    });
  }

  if (type !== 'sqlite') {
    it('gives a greater token than whoever had the key while the statement waited for its row', async () => {
      const service = world.service();
      await (await service.acquire('Report.run')).release();
      const other = await world.transaction();
      await other.query(`insert into method_lock (method_name, client_id) values ('Report.run', 'client-7')`);
      const waiting = service.acquire('Report.run', { ttlMs: TTL_MS });
      const isBlocked = async (): Promise<void> => expect(await world.ask(BLOCKED_SESSIONS_SQL[type])).toHaveLength(1);
      await eventually(isBlocked, { everyMs: LIST_MS });
      const [row] = await world.ask(`select ${nowUs[type]} as token`);
      await other.query(`delete from method_lock where method_name = 'Report.run'`);
      await other.commitTransaction();
      await other.release();
      const lock = await waiting;
      expect(serverToken(lock.fencingToken)).toBeGreaterThan(BigInt(String(row?.['token'])));
      await lock.release();
    });
  }

  it('is held for an older program while we hold it, and free for it afterwards', async () => {
    const service = world.service();
    const lock = await service.acquire('Report.run', { ttlMs: TTL_MS });
    expect(await world.insert('Report.run')).toBe(false);
    await lock.release();
    expect(await world.insert('Report.run')).toBe(true);
    await world.delete('Report.run');
    expect(await world.ask('select 1 from method_lock')).toEqual([]);
  });

  it('lets old and new programs in one at a time, with growing tokens', async () => {
    const services = [world.service(), world.service()];
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    const visit = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise(setImmediate);
      inside -= 1;
    };
    const rounds = Array.from({ length: 12 }, (_, round) => round);
    const old = async (client: string): Promise<void> => {
      for (const _ of rounds) {
        await eventually(() => world.insert('crossing', client), { withinMs: 20_000 });
        await visit();
        await world.delete('crossing');
      }
    };
    const young = async (service: (typeof services)[number]): Promise<void> => {
      for (const _ of rounds) {
        await service.withLock(
          'crossing',
          async (lock) => {
            tokens.push(lock.fencingToken);
            await visit();
          },
          { waitMs: 20_000 },
        );
      }
    };
    await Promise.all([old('client-1'), old('client-2'), ...services.map(young)]);
    expect(most).toBe(1);
    expect(tokens).toHaveLength(24);
    expect(new Set(tokens).size).toBe(24);
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
  });

  it('never takes a row without an expiry, however old', async () => {
    await world.insert('ancient');
    await age('ancient', 10 * 365 * 86_400_000);
    const service = world.service();
    await throughout(200, async () => expect(await service.tryAcquire('ancient')).toBeNull());
    expect(await world.ownersOf('ancient')).toEqual(['client-7']);
  });

  it('takes one that is older than the age limit, and none that is younger, nor one of ours', async () => {
    const service = world.service({ abandonedAfterMs: 60_000 });
    await world.insert('old');
    await age('old', 50_000);
    await expect(service.tryAcquire('old')).resolves.toBeNull();
    await age('old', 61_000);
    const lock = await service.acquire('old', { ttlMs: TTL_MS });
    await age('old', 61_000);
    await expect(world.service({ abandonedAfterMs: 60_000 }).tryAcquire('old')).resolves.toBeNull();
    await lock.release();
  });

  it('goes on when our holder died: for us after its lease, with a higher token; for others when it was reaped', async () => {
    const die = async (): Promise<bigint> => {
      const { backend } = world.service();
      const request = { owner: randomUUID(), ttlMs: 200, metadata: { host: 'gone', pid: 1 } };
      const lease = await backend.acquire('dead', { ...request, deadline: Deadline.after(5_000) });
      return lease?.fencingToken ?? 0n;
    };
    const tokens = [await die(), await die(), await die()];
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(3);
    await eventually(async () => expect(await world.ownersOf('dead')).toEqual([]));
    expect(await world.insert('dead')).toBe(false);
    world.service({ reapIdleAfterMs: 50 });
    await eventually(() => world.insert('dead'));
    await throughout(150, async () => expect(await world.ownersOf('dead')).toEqual(['client-7']));
  });

  it('is told when another program deletes our row, and frees nothing then', async () => {
    const lock = await world.service().acquire('deleted', { ttlMs: 300 });
    const told = aborted(lock.signal);
    await world.delete('deleted');
    await world.insert('deleted');
    await told;
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
    await lock.release();
    expect(await world.ownersOf('deleted')).toEqual(['client-7']);
  });

  it('keeps the counter while the clock is behind the last token, and the key free for us', async () => {
    const service = world.service();
    const lock = await service.acquire('ahead', { ttlMs: TTL_MS });
    const ahead = 2n ** 52n - 2n;
    await world.ask(`update method_lock set token = ${ahead} where method_name = 'ahead'`);
    await lock.release();
    expect(await world.ownersOf('ahead')).toEqual([]);
    const next = await service.acquire('ahead', { ttlMs: TTL_MS });
    expect(serverToken(next.fencingToken)).toBe(ahead + 1n);
    await next.release();
  });

  it('keeps the time of the last write current while it is held', async () => {
    const lock = await world.service().acquire('touched', { ttlMs: atLeastMs(300) });
    await age('touched', 3_600_000);
    const [before] = await world.ask(`select update_time as at from method_lock where method_name = 'touched'`);
    await eventually(async () => {
      const [row] = await world.ask(`select update_time as at from method_lock where method_name = 'touched'`);
      expect(row?.['at']).not.toEqual(before?.['at']);
    });
    await lock.release();
  });

  it('does not use up the numbers of the table by waiting', async () => {
    const numberOf = async (method: string): Promise<number> => {
      await world.insert(method);
      const rows = await world.ask('select id from method_lock where method_name = ?', [method]);
      return Number(rows[0]?.['id']);
    };
    const first = await numberOf('numbers');
    const service = world.service({ pollMs: 5 });
    await failureOf(service.acquire('numbers', { waitMs: 300 }));
    expect(await numberOf('next number')).toBe(first + 1);
  });

  it('refuses a key that the column cannot keep, without asking, and stays up', async () => {
    const service = world.service();
    const long = 'k'.repeat(701);
    if (type === 'sqlite') {
      await (await service.acquire(long)).release();
    } else {
      const error = await failureOf(service.acquire(long));
      expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' });
      expect(String(error)).toContain('it has 701 characters, and room is for 700');
    }
    if (type === 'postgres')
      await expect(failureOf(service.acquire('nul\0'))).resolves.toMatchObject({ option: 'key' });
    expect(service.health.status).toBe('up');
    await (await service.acquire('\u{1f512}'.repeat(700))).release();
  });

  it('keeps a key verbatim, as the older program writes it', async () => {
    const key = String.raw`App\Jobs\"it's" ? $1 -- ;`;
    await world.insert(key);
    await expect(world.service().tryAcquire(key)).resolves.toBeNull();
  });

  it('is an error and not a lock when the database is gone', async () => {
    if (type === 'sqlite') return;
    const dataSource = { options: Object.assign({ ...world.options }, { url: `${type}://root@127.0.0.1:1/test` }) };
    const service = world.service({ dataSource });
    await expect(failureOf(service.tryAcquire('k'))).resolves.toBeInstanceOf(LockBackendError);
  });

  it('waits in many processes at once without an error', async () => {
    const services = Array.from({ length: 3 }, () => world.service());
    const visits = services.flatMap((service) =>
      Array.from({ length: 10 }, () => handled(service.withLock('herd', async (lock) => lock.fencingToken))),
    );
    const tokens = await Promise.all(visits);
    expect(new Set(tokens).size).toBe(30);
  });
});
