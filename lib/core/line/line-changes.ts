import { randomInt } from 'node:crypto';
import { pause, systemClock } from '../time/timers.js';
import { findReadyWaiters, type Line, withoutExpired } from './line.js';
import type { StoredLine, LineStorage } from './line-storage.js';

const MAX_ATTEMPTS = 20;
const MAX_PAUSE_MS = 50;
/** Maximum number of acquisitions in one swap. A larger batch takes longer, so that other processes may swap first. */
const MAX_ACQUISITIONS_AT_ONCE = 100;

/** Computed change of a line. */
export interface LineChange<Result> {
  /** Result for the caller that wants the change. */
  readonly result: Result;
  /** The new line, or the same object if nothing changes. */
  readonly line: Line;
  /** Fencing token of a new grant. Absent: no claim was granted anew. */
  readonly token?: bigint;
}

type ComputeChange<Version, Result> = (reading: StoredLine<Version>) => LineChange<Result>;

/** Change for which a caller waits. */
interface PendingChange<Version> {
  readonly mayNeedToken: boolean;
  /** Computes the change. The `result` is a function that resolves the caller's promise with the actual result. */
  readonly compute: (reading: StoredLine<Version>) => LineChange<() => void>;
  readonly reject: (error: unknown) => void;
}

/** Changes of a key that wait for the next swap. Renewals and releases are made before acquisitions. */
class PendingChanges<Version> {
  readonly acquisitions: PendingChange<Version>[] = [];
  readonly otherChanges: PendingChange<Version>[] = [];

  get isEmpty(): boolean {
    return this.acquisitions.length + this.otherChanges.length === 0;
  }

  add(change: PendingChange<Version>): void {
    (change.mayNeedToken ? this.acquisitions : this.otherChanges).push(change);
  }
}

/**
 * Changes lines of claims by compare-and-swap. Changes of a key that arrive during a swap are made together afterwards,
 * where possible. Separate swaps would invalidate each other's readings, and most of them would fail.
 */
export class LineChanges<Version> {
  /** Changes that wait for the next swap, by key. A key without an entry has no change under way. */
  readonly #pendingByKey = new Map<string, PendingChanges<Version>>();

  constructor(private readonly storage: LineStorage<Version>) {}

  /** Makes a change that needs no new token. Resolves to its result. */
  change<Result>(key: string, computeChange: ComputeChange<Version, Result>): Promise<Result> {
    return this.#enqueue(key, false, computeChange);
  }

  /** Makes a change that may need a new token. Resolves to its result. */
  changeWithToken<Result>(key: string, computeChange: ComputeChange<Version, Result>): Promise<Result> {
    return this.#enqueue(key, true, computeChange);
  }

  #enqueue<Result>(key: string, mayNeedToken: boolean, computeChange: ComputeChange<Version, Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const compute = (reading: StoredLine<Version>): LineChange<() => void> => {
        const { result, ...lineAndToken } = computeChange(reading);
        return { ...lineAndToken, result: () => resolve(result) };
      };
      const pendingChanges = this.#pendingByKey.get(key);
      const newChange = { mayNeedToken, compute, reject };
      if (pendingChanges) pendingChanges.add(newChange);
      else void this.#makeChanges(key, newChange);
    });
  }

  async #makeChanges(key: string, firstChange: PendingChange<Version>): Promise<void> {
    const pendingChanges = new PendingChanges<Version>();
    pendingChanges.add(firstChange);
    this.#pendingByKey.set(key, pendingChanges);
    while (!pendingChanges.isEmpty) await this.#makeChangesInOneSwap(key, pendingChanges);
    this.#pendingByKey.delete(key);
  }

  /** Makes pending changes in one swap, and tells their callers. Changes that need a later token stay pending. */
  async #makeChangesInOneSwap(key: string, { acquisitions, otherChanges }: PendingChanges<Version>): Promise<void> {
    const newAcquisitions = acquisitions.splice(0, MAX_ACQUISITIONS_AT_ONCE);
    let changes = newAcquisitions;
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        changes = [...otherChanges.splice(0), ...changes];
        const storedLine = await this.storage.read(key, newAcquisitions.length > 0);
        const unexpiredReading = { ...storedLine, line: withoutExpired(storedLine.line, storedLine.now) };
        const { line, token, results } = computeTogether(unexpiredReading, changes);
        const isUnchanged = line === unexpiredReading.line;
        const nextLine = { line, token, ready: findReadyWaiters(line) };
        if (isUnchanged || (await this.storage.swap(key, storedLine.version, nextLine))) {
          acquisitions.unshift(...changes.slice(results.length));
          for (const tellResult of results) tellResult();
          return;
        }
        await pause(systemClock, randomInt(Math.min(2 ** attempt + 1, MAX_PAUSE_MS)));
      }
      throw new Error(`others changed the line of the key ${MAX_ATTEMPTS} times meanwhile`);
    } catch (error) {
      for (const { reject } of changes) reject(error);
    }
  }
}

/**
 * Computes the changes in order, each from the line of the previous change. Stops at a change that needs a token of a
 * later reading.
 */
function computeTogether<Version>(
  reading: StoredLine<Version>,
  changes: readonly PendingChange<Version>[],
): { readonly line: Line; readonly token: bigint | undefined; readonly results: (() => void)[] } {
  const results: (() => void)[] = [];
  let [{ line, nextToken }, token]: [StoredLine<Version>, bigint | undefined] = [reading, undefined];
  for (const { mayNeedToken, compute } of changes) {
    const isTokenMissing = token !== undefined && mayNeedToken && reading.allowsSeveralTokens !== true;
    if (isTokenMissing) break;
    const isLineUnchanged = line === reading.line;
    const { lease, waiters, ...otherFields } = reading;
    const plainLease = isLineUnchanged && lease ? { lease, ...(waiters ? { waiters } : {}) } : {};
    const change = compute({ ...otherFields, ...plainLease, line, nextToken });
    line = change.line;
    if (change.token !== undefined) [token, nextToken] = [change.token, change.token + 1n];
    results.push(change.result);
  }
  return { line, token, results };
}
