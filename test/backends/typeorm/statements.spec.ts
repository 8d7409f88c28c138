import { type Contract, wantedOf } from '../../support/index.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { SQL_SERVERS, sqlHarness } from './harness.js';
import { sqliteHarness } from './sqlite-harness.js';
import { logSqliteStatements, logStatements, type StatementLog } from '../../support/statement-log.js';

const OPTIONS = { ttlMs: 20_000 };

/**
 * To acquire a key that is free and was used before, and to release it when nobody waits; as each server counts itself.
 */
const STATEMENTS = {
  postgres: [1, 1],
  mariadb: [1, 1],
  'postgres-row': [6, 1],
  'mariadb-row': [6, 3],
  'postgres-session': [2, 1],
  'mariadb-session': [2, 1],
} as const;

describe('statements', () => {
  for (const name of wantedOf(SQL_SERVERS)) {
    const harness = sqlHarness(name, { sessionTtlMs: OPTIONS.ttlMs });
    describeOnBackend(name, harness, (contract) => costs(contract, STATEMENTS[name], () => logStatements(harness)));
  }
  for (const name of wantedOf(['sqlite'])) {
    describeOnBackend(name, sqliteHarness(), (contract) => costs(contract, [1, 1], async () => logSqliteStatements()));
  }
});

type Counts = readonly [toAcquire: number, toRelease: number];

function costs(contract: Contract, [acquired, released]: Counts, open: () => Promise<StatementLog>): void {
  it(`${acquired} to acquire, 1 to check a sequencer and ${released} to release, while nobody else wants the key`, async () => {
    const log = await open();
    const [service, key] = [await contract.service(), contract.key()];
    let lock = await service.acquire(key, OPTIONS);
    const valid = async (): Promise<void> => expect(await service.checkSequencer(lock.sequencer())).toBe('valid');
    await valid();
    await lock.release();
    const toAcquire = await log.during(async () => (lock = await service.acquire(key, OPTIONS)));
    const toCheck = await log.during(valid);
    const toRelease = await log.during(() => lock.release());
    expect({ toAcquire, count: toAcquire.length }).toMatchObject({ count: acquired });
    expect({ toCheck, count: toCheck.length }).toMatchObject({ count: 1 });
    expect({ toRelease, count: toRelease.length }).toMatchObject({ count: released });
  });
}
