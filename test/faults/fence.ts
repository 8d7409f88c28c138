import type { DatabaseConnection } from '../support/harness-connection.js';
import { FencedLedger } from '../support/fenced-ledger.js';
import { startHolder } from './start-holder.js';
import type { FaultTheme } from './fault-theme.js';

const LONG_TTL_MS = 20_000;

export const fence: FaultTheme = {
  title: 'the fence',
  declare({ it }) {
    it('A2: refuses the write of a holder that was stopped, and woke up after its lease', async (contract) => {
      const [other, key] = [await contract.service(), contract.key()];
      const database = contract.harness.connection?.() as DatabaseConnection;
      await using ledger = await FencedLedger.open(database);
      await using holder = await startHolder(contract);
      const { fencingToken } = await holder.acquire(key, { ttlMs: contract.processTtlMs });
      await expect(holder.child.call('writeFenced', { key, ledger: database })).resolves.toBeNull();
      // A process that is stopped in the middle of a statement keeps the file of SQLite locked.
      const { result: next } = await holder.freezeWhile(key, async () => {
        const lock = await other.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 10_000 });
        await expect(ledger.write(lock)).resolves.toBeNull();
        return lock;
      });
      const refusal = await holder.child.call('writeFenced', { key, ledger: database });
      expect(refusal).toMatch(/^StaleFenceError: /u);
      expect(refusal).toContain(String(next.fencingToken));
      await expect(ledger.write(next)).resolves.toBeNull();
      expect(await ledger.tokens()).toEqual([fencingToken, next.fencingToken, next.fencingToken]);
      await next.release();
    });
  },
};
