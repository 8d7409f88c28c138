import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { DataSource } from 'typeorm';
import { atLeastMs, type Contract, failureOf, timeLimitOf, wantedOf } from '../../support/index.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { SQL_SERVERS, type SqlHarness, sqlHarness } from './harness.js';

/** Makes the first `times` changes of the table fail with a code of the server's own. */
const FAILING = {
  postgres: (code: string, times: number) => [
    `create sequence tries`,
    `create function fail() returns trigger language plpgsql as
     $$ begin if nextval('tries') <= ${times} then raise exception 'no luck' using errcode = '${code}'; end if; return new; end $$`,
    `create trigger failing before update on distributed_lock for each row execute function fail()`,
  ],
  mariadb: (code: string, times: number) => [
    `create sequence tries`,
    `create trigger failing before update on distributed_lock for each row
     if nextval(tries) <= ${times} then signal sqlstate '40001' set mysql_errno = ${code}, message_text = 'no luck'; end if`,
  ],
};

const MENDED = {
  postgres: [
    'drop trigger if exists failing on distributed_lock',
    'drop function if exists fail',
    'drop sequence if exists tries',
  ],
  mariadb: ['drop trigger if exists failing', 'drop sequence if exists tries'],
};

/**
 * A deadlock, a serialization failure, a wait for a lock that took too long: which a row lock takes for a row that is
 * held.
 */
const CODES: Record<(typeof SQL_SERVERS)[number], readonly string[]> = {
  postgres: ['40P01', '40001', '55P03'],
  mariadb: ['1213', '1205'],
  'postgres-row': ['40P01', '40001'],
  'mariadb-row': ['1213'],
  'postgres-session': ['40P01', '40001', '55P03'],
  'mariadb-session': ['1213', '1205'],
};

const ISOLATION = {
  postgres: ['serializable', 'repeatable read'].map(
    (level) => `alter database postgres set default_transaction_isolation = '${level}'`,
  ),
  mariadb: ['SERIALIZABLE', 'REPEATABLE-READ', 'READ-UNCOMMITTED'].map(
    (level) => `set global tx_isolation = '${level}'`,
  ),
};

describe('S2: a busy database', () => {
  for (const name of wantedOf(SQL_SERVERS)) {
    const harness = sqlHarness(name, { sessionTtlMs: 20_000 });
    describeOnBackend(name, harness, (contract) => {
      failures(contract, harness, CODES[name]);
      isolation(contract, harness);
      if (harness.boundToConnection !== true) aLockedRow(contract, harness);
    });
  }
});

function failures(contract: Contract, harness: SqlHarness, codes: readonly string[]): void {
  const { type, ask } = harness;
  const askAll = async (statements: readonly string[]): Promise<void> => {
    for (const statement of statements) await ask(statement);
  };
  afterEach(() => askAll(MENDED[type]));

  it.each(codes)('%s is tried again, unseen by the caller', async (code) => {
    // It is tried again for so long.
    const service = contract.closing(new LockService(await harness.connectWith({ requestTimeoutMs: 10_000 })));
    const key = contract.key();
    await (await service.acquire(key)).release();
    await askAll(FAILING[type](code, 3));
    const lock = await service.tryAcquire(key);
    expect(lock?.isHeld).toBe(true);
    await lock?.release();
    expect(service.health.status).toBe('up');
  });

  it.each(codes)('%s without an end is an error in time, and the connection stays usable', async (code) => {
    const service = contract.closing(new LockService(await harness.connectWith({ requestTimeoutMs: atLeastMs(300) })));
    const key = contract.key();
    await (await service.acquire(key)).release();
    await askAll(FAILING[type](code, 1_000_000));
    const since = performance.now();
    await expect(failureOf(service.tryAcquire(key))).resolves.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(5_000));
    await askAll(MENDED[type]);
    await (await service.acquire(key)).release();
  });
}

function isolation(contract: Contract, { type, ask }: SqlHarness): void {
  it.each(ISOLATION[type])('3 × 20 callers never meet and never fail: %s', async (statement) => {
    await ask(statement);
    const services = [await contract.service(), await contract.service(), await contract.service()];
    const key = contract.key();
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    const visit = (service: LockService): Promise<void> =>
      service.withLock(
        key,
        async ({ fencingToken }) => {
          most = Math.max(most, ++inside);
          tokens.push(fencingToken);
          await new Promise(setImmediate);
          inside -= 1;
        },
        { ttlMs: 20_000, waitMs: 60_000 },
      );
    await Promise.all(services.flatMap((service) => Array.from({ length: 20 }, () => visit(service))));
    expect(most).toBe(1);
    expect(new Set(tokens).size).toBe(60);
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
  });
}

function aLockedRow(contract: Contract, { dataSource }: SqlHarness): void {
  it('a row that somebody else has locked is waited for a while, and then an error', async () => {
    const service = await contract.service();
    await (await service.acquire('locked')).release();
    const operator = await new DataSource(dataSource()).initialize();
    const transaction = operator.createQueryRunner();
    await transaction.startTransaction();
    await transaction.query(`select 1 from distributed_lock where lock_key = 'locked' for update`);
    const since = performance.now();
    await expect(failureOf(service.tryAcquire('locked'))).resolves.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(5_000));
    const waiting = service.acquire('locked');
    await transaction.rollbackTransaction();
    await (await waiting).release();
    await operator.destroy();
  });
}
