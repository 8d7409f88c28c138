import { LockService } from 'nestjs-distributed-lock/core';
import { Client } from 'pg';
import { connectBackend, describeWanted } from '../../support/index.js';
import { sqlHarness } from '../typeorm/harness.js';

const HELD_SQL = `select ((classid::bigint << 32) | objid::bigint)::text as id from pg_locks where locktype = 'advisory'`;

/** PostgreSQL frees the locks of a session that ends one after the other, so that others see some of them for a moment. */
describeWanted(
  ['postgres-row', 'postgres-session'],
  'a holder of whom the server has freed one of two locks, %s',
  (name) => {
    const harness = sqlHarness(name, { sessionTtlMs: 20_000 });
    beforeAll(() => harness.start());
    afterAll(() => harness.stop());

    it('has no valid sequencer', async () => {
      const connection = harness.connection();
      const service = new LockService(await connectBackend(connection));
      const client = new Client({
        host: '127.0.0.1',
        port: harness.server?.().port,
        user: 'postgres',
        database: 'postgres',
      });
      await client.connect();
      const lock = await service.acquire('half-freed', { ttlMs: 20_000 });
      const sequencer = lock.sequencer();
      const { rows } = await client.query<{ id: string }>(HELD_SQL);
      await expect(service.checkSequencer(sequencer)).resolves.toBe('valid');
      await lock.release();
      expect(rows).toHaveLength(2);
      for (const { id } of rows) {
        await client.query('select pg_advisory_lock($1::bigint)', [id]);
        await expect(service.checkSequencer(sequencer)).resolves.toBe('stale');
        await client.query('select pg_advisory_unlock($1::bigint)', [id]);
      }
      await client.end();
      await service.close();
    });
  },
);
