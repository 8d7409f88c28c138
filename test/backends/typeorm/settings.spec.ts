import { LockService } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { type Contract, eventually, failureOf, serverToken, throughout, wantedOf } from '../../support/index.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { SQL_SERVERS, type SqlHarness, sqlHarness } from './harness.js';

const LONG_TTL_MS = 20_000;

/** A server that ends what is idle for longer than this, and sooner than we look at it. */
const IMPATIENT = {
  postgres: [
    `alter database postgres set idle_in_transaction_session_timeout = '300ms'`,
    `alter database postgres set idle_session_timeout = '300ms'`,
  ],
  mariadb: ['set global idle_transaction_timeout = 1', 'set global wait_timeout = 1'],
};
const PATIENT = {
  postgres: [
    'alter database postgres reset idle_in_transaction_session_timeout',
    'alter database postgres reset idle_session_timeout',
  ],
  mariadb: ['set global idle_transaction_timeout = 0', 'set global wait_timeout = default'],
};
const IDLE_MS = { postgres: 900, mariadb: 1_500 };

/** Faults of a table, and the column that the error names. */
const WRONG: Record<SqlHarness['type'], [change: string, column: string][]> = {
  postgres: [
    ['alter token type integer', 'token'],
    ['alter lock_key type varchar(50)', 'lock_key'],
    ['drop constraint wrong_pkey', 'lock_key'],
  ],
  mariadb: [
    ['modify token integer', 'token'],
    ['modify lock_key varbinary(50)', 'lock_key'],
    ['drop primary key', 'lock_key'],
  ],
};
const COPY = {
  postgres: 'create table wrong (like distributed_lock including all)',
  mariadb: 'create table wrong like distributed_lock',
};

describe('the settings of an application and of its database', () => {
  for (const name of wantedOf(SQL_SERVERS)) {
    const harness = sqlHarness(name, { sessionTtlMs: LONG_TTL_MS });
    describeOnBackend(name, harness, (contract) => {
      dataSources(contract, harness);
      limits(contract, harness);
      tables(contract, harness);
    });
  }
});

function dataSources(contract: Contract, harness: SqlHarness): void {
  it('S3: works while the application has exhausted its pool of one, and outside of its transaction', async () => {
    const application = await new DataSource({ ...harness.dataSource(), poolSize: 1 }).initialize();
    const service = contract.closing(
      new LockService(typeorm({ ...harness.strategy, dataSource: application, synchronize: true })),
    );
    const [other, key] = [await contract.service(), contract.key()];
    const changed = new Error('changed my mind');
    const work = application.transaction(async (manager) => {
      await manager.query('select 1');
      const lock = await service.acquire(key, { ttlMs: LONG_TTL_MS });
      expect(lock.isHeld).toBe(true);
      throw changed;
    });
    await expect(failureOf(work)).resolves.toBe(changed);
    await expect(other.tryAcquire(key)).resolves.toBeNull();
    await application.destroy();
  });

  it('S14: with replication configured, only the master is asked', async () => {
    const { type, url } = harness.dataSource();
    const replication = { master: { url }, slaves: [{ url: harness.dataSource({ port: 1 }).url }] };
    const dataSource = { options: { type, replication } };
    const service = contract.closing(new LockService(typeorm({ ...harness.strategy, dataSource, synchronize: true })));
    await (await service.acquire(contract.key())).release();
  });
}

function limits(contract: Contract, harness: SqlHarness): void {
  afterEach(async () => {
    for (const statement of PATIENT[harness.type]) await harness.ask(statement);
  });

  it('S10: a lock outlasts what the server would end as idle', async () => {
    for (const statement of IMPATIENT[harness.type]) await harness.ask(statement);
    const [service, other, key] = [await contract.service(), await contract.service(), contract.key()];
    const lock = await service.acquire(key, { ttlMs: LONG_TTL_MS });
    await throughout(IDLE_MS[harness.type], () => expect(lock.isHeld).toBe(true));
    await expect(other.tryAcquire(key)).resolves.toBeNull();
    await lock.release();
  });
}

function tables(contract: Contract, { type, ask, connectWith, restart }: SqlHarness): void {
  const at = type === 'postgres' ? '$1' : '?';

  it('S9: a token goes on growing when the row is older than it was, or gone, and by one when it is ahead', async () => {
    const [service, key] = [await contract.service(), contract.key()];
    const next = async (): Promise<bigint> => {
      const lock = await service.acquire(key);
      await lock.release();
      return lock.fencingToken;
    };
    const tokens = [await next()];
    await ask(`update distributed_lock set token = 17 where lock_key = ${at}`, [key]);
    tokens.push(await next());
    await ask(`delete from distributed_lock where lock_key = ${at}`, [key]);
    tokens.push(await next());
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(3);
    const ahead = 2n ** 52n - 2n;
    await ask(`update distributed_lock set token = ${ahead} where lock_key = ${at}`, [key]);
    expect(serverToken(await next())).toBe(ahead + 1n);
  });

  it.each(WRONG[type])(
    'S12: refuses a table that cannot keep locks apart, and names the column: %s',
    async (how, column) => {
      await (await contract.service()).acquire(contract.key());
      await ask(COPY[type]);
      await ask(`alter table wrong ${how}`);
      const service = contract.closing(new LockService(await connectWith({ tableName: 'wrong', synchronize: false })));
      const error = await failureOf(service.acquire('k', { waitMs: 60_000 }));
      await ask('drop table wrong');
      expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION' });
      expect(String(error)).toContain(`its column ${column} is `);
    },
  );

  it('S12: a server that comes back without the table is told as such, and used again once it is there', async () => {
    const service = contract.closing(new LockService(await connectWith({ synchronize: false })));
    const [maker, key] = [await contract.service(), contract.key()];
    await (await maker.acquire(key)).release();
    await (await service.acquire(key)).release();
    // It would make the table anew as soon as it has a connection again.
    await maker.close();
    await restart?.({ empty: true });
    await eventually(async () => {
      const error = await failureOf(service.acquire(key, { waitMs: 0 }));
      expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION' });
      expect(String(error)).toMatch(/distributed_lock .*CreateDistributedLock1760000000000/u);
    });
    await contract.service();
    await eventually(async () => (await service.acquire(key)).release());
  });
}
