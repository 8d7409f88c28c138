import { wantedOf } from '../backends/describe-backend.js';
import type { BackendHarness } from '../conformance/backend-harness.js';
import type { Contract } from '../conformance/contract.js';
import { describeOnBackend } from '../conformance/describe-lock-backend.js';
import { redisHarness } from '../support/harness-redis.js';
import { redlockHarness } from '../support/harness-redlock.js';
import { sqlHarness } from '../support/harness-sql.js';
import { sqliteHarness } from '../support/harness-sqlite.js';

const HARNESSES = {
  'redis-queue': () => redisHarness('queue'),
  'redis-plain': () => redisHarness('plain'),
  'redis-getset': () => redisHarness('getset'),
  redlock: () => redlockHarness(),
  sqlite: () => sqliteHarness(),
  postgres: () => sqlHarness('postgres'),
  mariadb: () => sqlHarness('mariadb'),
} satisfies Record<string, () => BackendHarness>;

export type BackendName = keyof typeof HARNESSES;

/** The same tests on several backends, each with a server of its own, as far as `LOCK_BACKENDS` wants them. */
export function onBackends(names: readonly BackendName[], tests: (contract: Contract) => void): void {
  for (const name of wantedOf(names)) describeOnBackend(name, HARNESSES[name](), tests);
}
