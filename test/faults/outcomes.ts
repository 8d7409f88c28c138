import { eventually, timeLimitOf, whileFrozen } from '../support/index.js';
import type { FaultTheme } from './fault-theme.js';

const PATIENCE = { withinMs: 25_000 };

export const outcomes: FaultTheme = {
  title: 'what callers and health say of requests that fail',
  declare({ harness, alone }) {
    const { freeze } = harness;
    if (!freeze) return;
    alone('A29: server silent: each caller is told, health is down, and up again without a call', async (contract) => {
      const locks = await contract.service();
      await locks.withLock(contract.key(), () => undefined);
      expect(locks.health.status).toBe('up');
      await whileFrozen(freeze, async () => {
        const keys = [contract.key(), contract.key(), contract.key()];
        const asked = keys.map((key) => locks.acquire(key, { waitMs: 1_000 }).catch((error: unknown) => error));
        for (const failure of await Promise.all(asked)) expect(failure).toMatchObject({ code: 'LOCK_BACKEND' });
        await eventually(() => expect(locks.health.status).toBe('down'), PATIENCE);
        expect(locks.health.detail).toBeDefined();
      });
      await eventually(() => expect(locks.health.status).toBe('up'), PATIENCE);
      await expect(locks.withLock(contract.key(), () => 'in', { waitMs: timeLimitOf(5_000) })).resolves.toBe('in');
    });
  },
};
