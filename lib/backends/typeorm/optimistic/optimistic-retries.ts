import { randomInt } from 'node:crypto';
import { assertNumber, assertWhole, OptimisticConflictError, pause, systemClock } from '../../../core/index.js';
import { isConflict } from './conflict.js';

export interface OptimisticOptions {
  /**
   * Maximum number of repetitions after conflicts. With n contenders for one row, n are about enough.
   * @default 10
   */
  retries?: number;
  /**
   * Maximum milliseconds before the first repetition. The maximum doubles with each further repetition, up to half a
   * second. @default 5
   */
  baseDelayMs?: number;
}

const MAX_DELAY_MS = 500;

/** Repeats `work` after conflicts. The pauses are random, so that contenders do not conflict again at once. */
export async function repeatOnConflict<T>(work: () => Promise<T>, options: Required<OptimisticOptions>): Promise<T> {
  const { retries, baseDelayMs } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt > retries) throw createConflictError(attempt, error);
      const maxPauseMs = Math.min(baseDelayMs * 2 ** (attempt - 1), MAX_DELAY_MS);
      await pause(systemClock, randomInt(Math.ceil(maxPauseMs) + 1));
    }
  }
}

/** @throws LockConfigurationError */
export function resolveOptimisticOptions({
  retries = 10,
  baseDelayMs = 5,
}: OptimisticOptions): Required<OptimisticOptions> {
  assertWhole('retries', retries, 0, Number.MAX_SAFE_INTEGER);
  assertNumber('baseDelayMs', baseDelayMs, 0, Number.MAX_SAFE_INTEGER);
  return { retries, baseDelayMs };
}

function createConflictError(attempts: number, cause: unknown): OptimisticConflictError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `gave up after ${attempts} attempts, the last one: ${reason}`;
  return new OptimisticConflictError(message, attempts, { cause });
}
