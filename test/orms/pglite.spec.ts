import { PGlite } from '@electric-sql/pglite';
import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
import { LockConfigurationError, LockService, openBackend } from 'nestjs-distributed-lock/core';
import { postgres } from 'nestjs-distributed-lock/postgres';
import { atLeastMs } from '../support/machine.js';

describe('PGlite', () => {
  const pglite = new PGlite();
  // On a busy machine, the start takes longer than a backend waits for a connection.
  beforeAll(() => pglite.waitReady);
  afterAll(() => pglite.close());

  const connect = async () => openBackend(postgres({ pglite, synchronize: true })).store;
  for (const { name, check } of leaseStorePromises({ connect, shortTtlMs: atLeastMs(1_000) })) it(name, () => check());

  it('serves callers of one process, and leaves the database open', async () => {
    const service = new LockService(postgres({ pglite, synchronize: true }));
    let inside = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await pglite.query('select 1');
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 20 }, () => service.withLock('sale', work)));
    await service.close();
    await expect(pglite.query('select count(*)::int as n from distributed_lock')).resolves.toMatchObject({
      rows: [{ n: expect.any(Number) }],
    });
  });

  it('waits for a start that takes longer than a statement may, and than the opening of other connections', async () => {
    const waitReady = new Promise((resolve) => setTimeout(resolve, 2_500));
    const starting = {
      waitReady,
      query: (sql: string, values?: unknown[]) => waitReady.then(() => pglite.query(sql, values)),
    };
    const service = new LockService(
      postgres({ pglite: starting, synchronize: true, patienceMs: 0, requestTimeoutMs: 1_500 }),
    );
    await expect(service.withLock('sale', () => 'in')).resolves.toBe('in');
    await service.close();
  });

  it.each(['row', 'session'] as const)('refuses the strategy %s', (strategy) => {
    expect(() => postgres({ pglite, strategy })).toThrow(LockConfigurationError);
  });
});
