/** Checks for the tests of stores, for any test framework: one for each promise of a `LeaseStore`. */
import { adopting } from './adopting.js';
import { granting } from './granting.js';
import type { LeaseStoreHarness } from './harness.js';
import { keys } from './keys.js';
import { locking } from './locking.js';
import { looking } from './looking.js';
import { releasing } from './releasing.js';
import { renewing } from './renewing.js';
import { revocation } from './revocation.js';
import { silence } from './silence.js';
import { CheckContext } from './check-context.js';
import { watching } from './watching.js';

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
  const themes = [
    granting,
    renewing,
    releasing,
    adopting,
    keys,
    watching,
    locking,
    looking,
    ...(harness.revoke ? [revocation(harness.revoke.bind(harness))] : []),
    ...(harness.freeze ? [silence(harness.freeze.bind(harness))] : []),
  ];
  return themes
    .flatMap((theme) => Object.entries(theme))
    .map(([name, check]) => ({ name, check: () => CheckContext.run(harness, check) }));
}
