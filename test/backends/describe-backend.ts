import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
import type { LeaseStore } from 'nestjs-distributed-lock/core';
import { type BackendHarness, type Suite, wantedOf } from '../support/index.js';
import { contractPromises, describePromises } from '../conformance/describe-lock-backend.js';
import { lockStorePromises } from '../nestjs-locks/lock-store-promises.js';
import { connectBackend, type Connection, type SqlConnection } from '../support/harness-connection.js';
import { type BackendName, registered } from './registry.js';

/** For each connection and answer of a database that is never silent. */
const PATIENCE_MS = 15_000;
/** As patient as a session can be whose end some of the checks wait for. */
const SESSION_PATIENCE_MS = 5_000;

/**
 * The contract, and what else the spec has to say about the backend; nothing at all where `LOCK_BACKENDS` leaves it out. On
 * some of ours, the promises that are exported for the stores of others are checked, too, and those of a lock store.
 */
export function describeBackend(name: BackendName, more: () => void = () => undefined): void {
  const { harness, leaseStore = false, lockStore = false, quick = false } = registered(name);
  for (const wantedName of wantedOf([name])) {
    const declare = (suite: Suite): void => {
      contractPromises(suite);
      if (leaseStore) describe('the conformance suite', () => storePromises(suite));
      if (lockStore) describe('a lock store', () => lockStorePromises(suite));
    };
    describePromises(wantedName, harness(), declare, { timedInQuickTier: quick });
    describe(wantedName, more);
  }
}

function storePromises({ harness, it: beside, alone }: Suite): void {
  // On a busy machine the loop of a process may stand still for longer than the shortest TTL of memory.
  const shortTtlMs = Math.max(500, harness.shortTtlMs);
  const faults = {
    revoke: (key: string) => harness.revoke(key),
    ...(harness.freeze ? { freeze: harness.freeze } : {}),
  };
  const harmless = leaseStorePromises({ connect: () => patientStoreOf(harness), shortTtlMs });
  const checks = new Map(harmless.map(({ name, check }) => [name, check]));
  for (const { name, check } of leaseStorePromises({ connect: () => storeOf(harness), shortTtlMs, ...faults })) {
    const harmlessCheck = checks.get(name);
    if (harmlessCheck) beside(name, () => harmlessCheck());
    else alone(name, () => check());
  }
}

async function storeOf(harness: BackendHarness): Promise<LeaseStore> {
  const { store } = await harness.connect();
  return store;
}

/** Fifty callers of a database may need fifty connections, which a busy machine is slow to open. */
async function patientStoreOf(harness: BackendHarness): Promise<LeaseStore> {
  const connection = harness.connection?.();
  if (!connection || !isSql(connection)) return storeOf(harness);
  const patience =
    connection.options?.strategy === 'session'
      ? { sessionTtlMs: SESSION_PATIENCE_MS, requestTimeoutMs: SESSION_PATIENCE_MS }
      : { connectTimeoutMs: PATIENCE_MS, requestTimeoutMs: PATIENCE_MS };
  const { store } = await connectBackend({ ...connection, options: { ...connection.options, ...patience } });
  return store;
}

function isSql(connection: Connection): connection is SqlConnection {
  return ['postgres', 'mariadb', 'mysql'].includes(connection.backend);
}
