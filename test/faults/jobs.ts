import { PATIENT_MS } from '../conformance/contract.js';
import type { FaultTheme } from './fault-theme.js';
import { startHolder } from './start-holder.js';

/** Each takes a busy machine half a second to start: `JOB_PROCESSES=10` tries more of them. */
const PROCESSES = Number(process.env['JOB_PROCESSES'] ?? 3);
/** Longer than any backend waits before it replaces a connection. */
const FROZEN_MS = 3_000;

export const jobs: FaultTheme = {
  title: 'what processes do that have nothing else open',
  thorough: true,
  declare({ alone }) {
    alone('A28: server silent while jobs ask for a lock: each ends with an answer', async (contract) => {
      const { freeze } = contract.harness;
      const holders = await Promise.all(Array.from({ length: PROCESSES }, () => startHolder(contract)));
      const keys = holders.map(() => contract.key());
      for (const [index, key] of keys.entries()) await holders[index]?.acquireAndRelease(key, { ttlMs: 10_000 });
      const thaw = await freeze?.();
      for (const [index, key] of keys.entries()) holders[index]?.startJob(key, { ttlMs: 10_000, waitMs: PATIENT_MS });
      if (thaw) await new Promise((resolve) => setTimeout(resolve, FROZEN_MS));
      await thaw?.();
      const ends = holders.map(async ({ child }) => {
        const { code, signal } = await child.exited;
        return [code ?? signal, /^answer: .*$/mu.exec(child.stderr)?.[0] ?? 'no answer'];
      });
      const outcomes = await Promise.all(ends);
      expect(outcomes).toEqual(outcomes.map(() => [0, expect.stringMatching(/^answer: (?:done|Lock\w*Error)/u)]));
    });
  },
};
