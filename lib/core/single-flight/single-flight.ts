import { assertKey } from '../contract/key.js';
import { currentHolds } from '../holding/call-tree.js';
import type { LockHandle } from '../holding/lock-handle.js';
import { assertOptions, isObject, refuseOption, shownOption } from '../kit/option-checks.js';
import { sharedState } from '../kit/shared-state.js';
import type { LockService } from '../lock-service.js';
import type { AcquireOptions } from '../options/lock-options.js';

/** Work whose value is wanted by many callers, and how to reach the cache that keeps the value for all processes. */
export interface SingleFlightSteps<T> {
  /** Reads the value from the cache. `undefined` and `null` mean that there is none. */
  readonly read: () => Promise<T | null | undefined> | T | null | undefined;
  /** Makes the value, under the lock. */
  readonly work: (lock: LockHandle) => Promise<T> | T;
  /** Writes the value to the cache, under the lock. */
  readonly write: (value: T) => unknown;
}

/** Options of the lock of `singleFlight`. Callers that share a run share the options of the first caller. */
export type SingleFlightOptions = Omit<AcquireOptions, 'signal' | 'mode' | 'limit' | 'permits' | 'reentrant'>;

const STEP_NAMES = ['read', 'work', 'write'] as const;
const LOCK_OPTION_NAMES = ['waitMs', 'ttlMs', 'watchdog', 'maxHoldMs', 'minHoldMs', 'lockDelayMs', 'awaitRelease'];

type RunUnderLock<T> = (onLost: (reason: unknown) => void) => Promise<T>;

const doNothing = (): void => undefined;

const flightsByService = sharedState('single-flights', () => new WeakMap<LockService, Map<string, Promise<unknown>>>());

/**
 * Resolves to the value that `read` finds, or else has one caller of all processes make and write it:
 * ```ts
 * const report = await singleFlight(locks, 'report_7', {
 *   read: () => cache.get<string>('report_7'),
 *   work: (lock) => buildReport(7, lock.signal),
 *   write: (text) => cache.set('report_7', text, 60_000),
 * });
 * ```
 * Callers of one process share a run, and its error. Callers of other processes wait for the lock at most `waitMs`, and
 * read again. No error is remembered: the next caller tries again.
 * @throws what `read`, `work` and `write` throw; as `LockService.withLock` does. `write` is not called after the lock
 * was lost.
 */
// oxlint-disable-next-line typescript/no-generated-empty-object-type -- any value but undefined and null
export async function singleFlight<T extends NonNullable<unknown>>(
  locks: LockService,
  key: string,
  steps: SingleFlightSteps<T>,
  options: SingleFlightOptions = {},
): Promise<T> {
  assertKey(key);
  assertSteps(steps);
  assertOptions(options, LOCK_OPTION_NAMES, 'singleFlight');
  const lockOptions = locks.resolve(options);
  const cachedValue = await steps.read();
  if (isValue(cachedValue)) return cachedValue;
  const run: RunUnderLock<T> = (onLost) =>
    locks.withLock(
      key,
      (lock) => {
        lock.signal.addEventListener('abort', () => onLost(lock.signal.reason), { once: true });
        return readOrMake(steps, lock);
      },
      lockOptions,
    );
  // A shared run may wait for a lock of the caller's call tree, and would then never end.
  return isInsideLock() ? run(doNothing) : shareRun(flightsOf(locks), key, run);
}

async function readOrMake<T>(steps: SingleFlightSteps<T>, lock: LockHandle): Promise<T> {
  const cachedValue = await steps.read();
  if (isValue(cachedValue)) return cachedValue;
  lock.throwIfLost();
  const value = await steps.work(lock);
  lock.throwIfLost();
  if (isValue(value)) await steps.write(value);
  return value;
}

/**
 * Shares one run among the callers with one key. A run that loses its lock answers them at once, because its work may
 * hang. It takes no later callers, because another process may be done.
 */
async function shareRun<T>(flights: Map<string, Promise<unknown>>, key: string, run: RunUnderLock<T>): Promise<T> {
  const flight = flights.get(key);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers with one key want one value
  if (flight) return (await flight) as T;
  const newFlight = new Promise<T>((resolve, reject) => {
    run(reject).then(resolve, reject);
  }).finally(() => {
    if (flights.get(key) === newFlight) flights.delete(key);
  });
  flights.set(key, newFlight);
  return newFlight;
}

function flightsOf(locks: LockService): Map<string, Promise<unknown>> {
  const flights = flightsByService.get(locks) ?? new Map<string, Promise<unknown>>();
  flightsByService.set(locks, flights);
  return flights;
}

function isInsideLock(): boolean {
  return currentHolds().some(({ hasEnded }) => !hasEnded);
}

function isValue<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

function assertSteps(steps: { readonly [Name in (typeof STEP_NAMES)[number]]: unknown }): void {
  if (!isObject(steps))
    refuseOption('steps', `must be an object with ${STEP_NAMES.join(', ')}; they were ${shownOption(steps)}`);
  for (const name of STEP_NAMES) {
    if (typeof steps[name] !== 'function') refuseOption(name, `must be a function; it was ${shownOption(steps[name])}`);
  }
}
