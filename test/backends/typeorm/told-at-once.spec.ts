import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { aborted } from '../../conformance/contract.js';
import { eventually } from '../../support/eventually.js';
import { wantedOf } from '../describe-backend.js';
import { LISTENERS, SqlWorld } from './sql-world.js';

/** A third of it, after which a lease is renewed, is longer than this test may take. */
const TTL_MS = 600_000;

for (const type of wantedOf(['postgres'])) {
  describe(`a holder on ${type} whom another process evicts`, () => {
    const world = new SqlWorld(type);
    beforeAll(() => world.start());
    afterEach(() => world.endTest());
    afterAll(() => world.stop());

    it('is told at once, if its process listens for its own waiters', async () => {
      const [holders, operators] = [world.service(), world.service()];
      const other = await operators.acquire('other');
      const waiting = holders.acquire('other', { waitMs: 10_000 });
      await eventually(async () => expect(await world.ask(LISTENERS)).toHaveLength(1));
      await other.release();
      await (await waiting).release();
      const lock = await holders.acquire('key', { ttlMs: TTL_MS });
      await operators.evict('key');
      await aborted(lock.signal);
      expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    });
  });
}
