import { randomInt } from 'node:crypto';
import { pause, systemClock } from '../time/timers.js';
import { findReadyWaiters, type Line, withoutExpired } from './line.js';
import type { CellReading, LineCell } from './line-cell.js';

const MAX_ATTEMPTS = 20;
const MAX_PAUSE_MS = 50;

/** `token` is that of a new grant. */
export interface LineChange<Result> {
  readonly result: Result;
  readonly line: Line;
  readonly token?: bigint;
}

/** Change that a caller wants, and what the caller is told. */
interface PendingChange<Version> {
  readonly mayNeedToken: boolean;
  /** Computes the change of the given line. Returns a function that tells the caller its result. */
  readonly compute: (reading: CellReading<Version>) => LineChange<() => void>;
  readonly reject: (error: unknown) => void;
}

/**
 * Changes lines of claims by compare-and-swap. Changes of one key that come while another one is under way are made
 * together. One by one, they would undo each other's readings, and most would fail.
 */
export class LineChanges<Version> {
  /** Changes that wait for the one that is under way. A key without an entry has none under way. */
  readonly #pendingByKey = new Map<string, PendingChange<Version>[]>();

  constructor(private readonly cell: LineCell<Version>) {}

  change<Result>(
    key: string,
    mayNeedToken: boolean,
    computeChange: (reading: CellReading<Version>) => LineChange<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const compute = (reading: CellReading<Version>): LineChange<() => void> => {
        const { result, ...lineAndToken } = computeChange(reading);
        return { ...lineAndToken, result: () => resolve(result) };
      };
      const pendingChanges = this.#pendingByKey.get(key);
      const pendingChange = { mayNeedToken, compute, reject };
      if (pendingChanges) pendingChanges.push(pendingChange);
      else void this.#makeChanges(key, [pendingChange]);
    });
  }

  async #makeChanges(key: string, pendingChanges: PendingChange<Version>[]): Promise<void> {
    this.#pendingByKey.set(key, pendingChanges);
    while (pendingChanges.length > 0) {
      const batch = pendingChanges.splice(0);
      try {
        const remainingChanges = await this.#makeTogether(key, batch);
        pendingChanges.unshift(...remainingChanges);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#pendingByKey.delete(key);
  }

  /** Makes changes in their order, and tells their callers. Returns those that need a token of a later reading. */
  async #makeTogether(
    key: string,
    changes: readonly PendingChange<Version>[],
  ): Promise<readonly PendingChange<Version>[]> {
    const mayNeedToken = changes.some((change) => change.mayNeedToken);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const cellReading = await this.cell.read(key, mayNeedToken);
      const unexpiredReading = { ...cellReading, line: withoutExpired(cellReading.line, cellReading.now) };
      const { line, token, results } = computeTogether(unexpiredReading, changes);
      const isUnchanged = line === unexpiredReading.line;
      const nextLine = { line, token, ready: findReadyWaiters(line) };
      if (isUnchanged || (await this.cell.swap(key, cellReading.version, nextLine))) {
        for (const tellResult of results) tellResult();
        return changes.slice(results.length);
      }
      await pause(systemClock, randomInt(Math.min(2 ** attempt + 1, MAX_PAUSE_MS)));
    }
    throw new Error(`others changed the line of the key ${MAX_ATTEMPTS} times meanwhile`);
  }
}

function computeTogether<Version>(
  reading: CellReading<Version>,
  changes: readonly PendingChange<Version>[],
): { readonly line: Line; readonly token: bigint | undefined; readonly results: (() => void)[] } {
  const results: (() => void)[] = [];
  let [{ line, nextToken }, token]: [CellReading<Version>, bigint | undefined] = [reading, undefined];
  for (const { mayNeedToken, compute } of changes) {
    const isTokenMissing = token !== undefined && mayNeedToken && reading.allowsSeveralTokens !== true;
    if (isTokenMissing) break;
    const isPlainLease = line === reading.line;
    const { lease, waiters, ...otherFields } = reading;
    const plainLease = isPlainLease && lease ? { lease, ...(waiters ? { waiters } : {}) } : {};
    const change = compute({ ...otherFields, ...plainLease, line, nextToken });
    line = change.line;
    if (change.token !== undefined) [token, nextToken] = [change.token, change.token + 1n];
    results.push(change.result);
  }
  return { line, token, results };
}
