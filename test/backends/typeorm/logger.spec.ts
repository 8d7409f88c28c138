import { rowManager } from 'nestjs-distributed-lock/typeorm';
import type { Logger } from 'typeorm';
import { eventually } from '../../support/eventually.js';
import { describeServers } from './sql-world.js';

describeServers('the logger of the application', (world, type) => {
  const seen: string[] = [];
  const note = (...[text]: readonly unknown[]): unknown => seen.push(String(text));
  const noteSlow = (ms: number, text: string): unknown => seen.push(`${ms} ms: ${text}`);
  const logger: Logger = {
    logQuery: note,
    logQueryError: (_error, text) => note(text),
    logQuerySlow: noteSlow,
    logSchemaBuild: note,
    logMigration: note,
    log: note,
  };
  /** Every statement counts as a slow one. */
  const options = () => ({ type, url: world.url, logger, logging: false, maxQueryExecutionTime: 0.000_001 });

  it.each(['lease', 'row', 'session'] as const)(
    'sees no statement of the locks, which have keys and owners: %s',
    async (strategy) => {
      seen.length = 0;
      const service = world.service({ strategy, dataSource: { options: options() } });
      const holder = world.service({ strategy });
      const lock = await holder.acquire('held');
      const waiting = service.acquire('held', { waitMs: 10_000 });
      await eventually(() => service.health.status === 'up');
      await expect(holder.tryAcquire('held')).resolves.toBeNull();
      await lock.release();
      const next = await waiting;
      await next.complete();
      await next.release();
      await service.close();
      expect(seen.filter((text) => !COMMIT.test(text))).toEqual([]);
    },
  );

  it('sees what the holder of a row writes', async () => {
    seen.length = 0;
    const service = world.service({ strategy: 'row', dataSource: { options: options() } });
    await service.withLock('written', (lock) => rowManager(lock).query('select 1 as written'));
    expect(seen.filter((text) => text.includes('select 1 as written'))).not.toEqual([]);
  });
});

/** It ends the transaction of the holder's writes. */
const COMMIT = /^([\d.]+ ms: )?commit$/iu;
