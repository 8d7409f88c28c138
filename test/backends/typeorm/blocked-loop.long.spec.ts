import { setImmediate as checkPhase } from 'node:timers/promises';
import { LockService } from 'nestjs-distributed-lock/core';
import { blockEventLoop, connectBackend, type Contract, timeLimitOf, wantedOf } from '../../support/index.js';
import { describeOnBackend } from '../../conformance/describe-lock-backend.js';
import { SQL_SERVERS, type SqlHarness, sqlHarness } from './harness.js';

/** Within twice that, for which the loop is blocked, the server of a busy machine has to answer. */
const STATEMENT_TIMEOUT_MS = Math.min(timeLimitOf(500), 2_000);

describe('a blocked event loop', () => {
  for (const name of wantedOf(SQL_SERVERS)) {
    const harness = sqlHarness(name, { sessionTtlMs: 20_000 });
    describeOnBackend(name, harness, (contract) => answersInTime(contract, harness));
  }
});

function answersInTime(contract: Contract, harness: SqlHarness): void {
  it('A4: an answer that arrived meanwhile is an answer, and its connection stays', async () => {
    const { options, ...connection } = harness.connection();
    // With its table there, and without its connections to open.
    await (await (await contract.service()).acquire(contract.key())).release();
    const backend = await connectBackend({
      ...connection,
      options: { strategy: 'lease', ...options, requestTimeoutMs: STATEMENT_TIMEOUT_MS },
    });
    const [states, failures]: [string[], string[]] = [[], []];
    const observer = {
      healthChanged: ({ status }: { status: string }) => states.push(status),
      backendFailed: ({ operation }: { operation: string }) => failures.push(operation),
    };
    await using locks = new LockService(backend, { observers: [observer] });
    const key = contract.key();
    const lastsLong = { ttlMs: 20_000, waitMs: 5_000 };
    await (await locks.acquire(key, lastsLong)).release();
    states.length = 0;
    for (let round = 0; round < 2; round += 1) {
      const acquiring = locks.acquire(key, lastsLong);
      await checkPhase();
      blockEventLoop(STATEMENT_TIMEOUT_MS * 2);
      const releasing = (await acquiring).release();
      await checkPhase();
      blockEventLoop(STATEMENT_TIMEOUT_MS * 2);
      await releasing;
    }
    expect({ states, failures }).toEqual({ states: [], failures: [] });
  });
}
