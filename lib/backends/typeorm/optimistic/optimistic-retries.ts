import { randomInt } from 'node:crypto';
import { assertNumber, assertWhole, OptimisticConflictError, pause, systemClock } from '../../../core/index.js';
import { isConflict } from './conflict.js';

export interface OptimisticOptions {
  /**
   * How often work that met a conflict is run again. Contenders for one row need about as many as they are. @default 10
   */
  retries?: number;
  /**
   * The longest pause before the first repetition. It doubles with each further one, up to half a second. @default 5
   */
  baseDelayMs?: number;
}

const LONGEST_DELAY_MS = 500;

/** Runs `work` until it meets no conflict. Pauses are random from nothing to their limit, so that rivals come apart. */
export async function repeatOnConflict<T>(work: () => Promise<T>, options: Required<OptimisticOptions>): Promise<T> {
  const { retries, baseDelayMs } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt > retries) throw exhausted(attempt, error);
      const longest = Math.min(baseDelayMs * 2 ** (attempt - 1), LONGEST_DELAY_MS);
      await pause(systemClock, randomInt(Math.ceil(longest) + 1));
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

function exhausted(attempts: number, cause: unknown): OptimisticConflictError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `gave up after ${attempts} attempts, the last one: ${reason}`;
  return new OptimisticConflictError(message, attempts, { cause });
}
