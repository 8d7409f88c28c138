import { describe, it } from '@jest/globals';
import type { BackendHarness } from '../conformance/backend-harness.js';
import { describeLockBackend } from '../conformance/describe-lock-backend.js';

const wanted = (process.env.LOCK_BACKENDS ?? '').split(',').filter((name) => name !== '');

/** Whether `LOCK_BACKENDS` leaves this backend in: it names the backend, or its family (`redis` for `redis-plain`). */
function isWanted(name: string): boolean {
  return wanted.length === 0 || wanted.some((one) => name === one || name.startsWith(`${one}-`));
}

/** Those of `names` that are wanted. Where none is, the file says so, because jest fails one without a test. */
export function wantedOf<Name extends string>(names: readonly Name[]): Name[] {
  const left = names.filter(isWanted);
  if (left.length === 0) it(`${names.join(', ')}: left out by LOCK_BACKENDS`, () => undefined);
  return left;
}

/** The contract, and what else the spec has to say about the backend; nothing at all where `LOCK_BACKENDS` leaves it out. */
export function describeBackend(name: string, harness: BackendHarness, more: () => void = () => undefined): void {
  for (const wantedName of wantedOf([name])) {
    describeLockBackend(wantedName, harness);
    describe(wantedName, more);
  }
}
