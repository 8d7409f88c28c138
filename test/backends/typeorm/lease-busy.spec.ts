import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { DataSource } from 'typeorm';
import { failureOf, SLACK_MS } from '../../conformance/contract.js';
import { describeServers, SqlWorld } from './sql-world.js';

const SQL = {
  postgres: {
    serializable: `alter database postgres set default_transaction_isolation = 'serializable'`,
    repeatable: `alter database postgres set default_transaction_isolation = 'repeatable read'`,
    usual: `alter database postgres reset default_transaction_isolation`,
    lockRow: `select 1 from distributed_lock where lock_key = $1 for update`,
  },
  mariadb: {
    serializable: `set global tx_isolation = 'SERIALIZABLE'`,
    repeatable: `set global tx_isolation = 'READ-UNCOMMITTED'`,
    usual: `set global tx_isolation = default`,
    lockRow: `select 1 from distributed_lock where lock_key = ? for update`,
  },
} as const;

/** What makes the first `times` changes of the table fail with a code of the server's own. */
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
  postgres: ['drop trigger failing on distributed_lock', 'drop function fail', 'drop sequence tries'],
  mariadb: ['drop trigger failing', 'drop sequence tries'],
};

const CODES = { postgres: ['40P01', '40001', '55P03'], mariadb: ['1213', '1205'] };

describeServers('S2: a busy database', (type) => {
  const world = new SqlWorld(type);
  const sql = SQL[type];
  beforeAll(() => world.start());
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const askAll = async (statements: readonly string[]): Promise<void> => {
    for (const statement of statements) await world.ask(statement);
  };
  it.each(CODES[type])('%s is tried again, unseen by the caller', async (code) => {
    const service = world.service();
    await (await service.acquire('S2')).release();
    await askAll(FAILING[type](code, 3));
    try {
      const lock = await service.tryAcquire('S2');
      expect(lock?.isHeld).toBe(true);
      await lock?.release();
      expect(service.health.status).toBe('up');
    } finally {
      await askAll(MENDED[type]);
    }
  });

  it.each(CODES[type])('%s without an end is an error in time, and the connection stays usable', async (code) => {
    const service = world.service({ statementTimeoutMs: 300 });
    await (await service.acquire('S2')).release();
    await askAll(FAILING[type](code, 1_000_000));
    try {
      const since = performance.now();
      const error = await failureOf(service.tryAcquire('S2'));
      expect(performance.now() - since).toBeLessThan(300 + SLACK_MS);
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toContain('no luck');
    } finally {
      await askAll(MENDED[type]);
    }
    await (await service.acquire('S2')).release();
  });

  it('a row that somebody else has locked is waited for a while, and then an error', async () => {
    const service = world.service();
    await (await service.acquire('locked')).release();
    const operator = await new DataSource({ type, url: world.url }).initialize();
    const transaction = operator.createQueryRunner();
    await transaction.startTransaction();
    await transaction.query(sql.lockRow, ['locked']);
    const since = performance.now();
    await expect(failureOf(service.tryAcquire('locked'))).resolves.toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toBeLessThan(2_000 + SLACK_MS);
    const waiting = service.acquire('locked');
    await transaction.rollbackTransaction();
    await (await waiting).release();
    await operator.destroy();
  });

  it.each([sql.serializable, sql.repeatable])('3 × 20 callers never meet and never fail: %s', async (isolation) => {
    await world.ask(isolation);
    const services = [world.service(), world.service(), world.service()];
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    const visit = async (service: (typeof services)[number], key: string): Promise<void> => {
      await service.withLock(key, async (lock) => {
        most = Math.max(most, ++inside);
        tokens.push(lock.fencingToken);
        await new Promise(setImmediate);
        inside -= 1;
      });
    };
    await Promise.all(services.flatMap((service) => Array.from({ length: 20 }, () => visit(service, 'isolated'))));
    await world.ask(sql.usual);
    expect(most).toBe(1);
    expect(new Set(tokens).size).toBe(60);
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
  });
});
