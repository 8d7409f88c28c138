/** Checks that every `LeaseStore` has to pass, for any test framework. */
import { adoptionChecks } from './adopting.js';
import { grantChecks } from './granting.js';
import type { LeaseStoreHarness } from './harness.js';
import { keyChecks } from './keys.js';
import { lockServiceChecks } from './locking.js';
import { lookupChecks } from './looking.js';
import { releaseChecks } from './releasing.js';
import { renewalChecks } from './renewing.js';
import { createRevocationChecks } from './revocation.js';
import { createSilenceChecks } from './silence.js';
import { CheckContext } from './check-context.js';
import { watchChecks } from './watching.js';

export { type LeaseStoreHarness, type Thaw } from './harness.js';

export interface LeaseStorePromise {
  readonly name: string;
  /** Rejects where the store breaks the promise. Takes some seconds, and at most 30. */
  readonly check: () => Promise<void>;
}

/**
 * Returns the promises of every store. Use `for (const { name, check } of leaseStorePromises(harness)) it(name, check)`
 * in the place of tests, with a time limit of 30 seconds. The server of `harness` has to run before the first check.
 * Keys are random, and free after each check.
 */
export function leaseStorePromises(harness: LeaseStoreHarness): readonly LeaseStorePromise[] {
  const checkGroups = [
    grantChecks,
    renewalChecks,
    releaseChecks,
    adoptionChecks,
    keyChecks,
    watchChecks,
    lockServiceChecks,
    lookupChecks,
    ...(harness.revoke ? [createRevocationChecks(harness.revoke.bind(harness))] : []),
    ...(harness.freeze ? [createSilenceChecks(harness.freeze.bind(harness))] : []),
  ];
  return checkGroups
    .flatMap((group) => Object.entries(group))
    .map(([name, check]) => ({ name, check: () => CheckContext.run(harness, check) }));
}
