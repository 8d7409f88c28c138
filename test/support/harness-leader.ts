import { randomInt } from 'node:crypto';
import type { LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { HistoryRecorder } from './history.js';

export interface Leading {
  readonly keys: readonly string[];
  readonly ttlMs: number;
  readonly longestTermMs: number;
  /** Where to write the history, as which process. */
  readonly history: string;
  readonly proc: string;
}

const STEP_MS = 2;

/** Stands for offices until the service is closed, serves short terms, and writes down when it believed to lead. */
export function stand(locks: LockService, { keys, ttlMs, longestTermMs, history: file, proc }: Leading): void {
  const history = new HistoryRecorder(file, proc);
  for (const key of keys) {
    let candidacy = history.invoke({ key, op: 'acquire' });
    const believes = (term: LockHandle): boolean => {
      const at = process.hrtime.bigint();
      const { isHeld } = term;
      history.mark({ key, op: isHeld ? 'held' : 'lost', owner: candidacy.owner }, at);
      return isHeld;
    };
    const work = async (term: LockHandle): Promise<void> => {
      const at = process.hrtime.bigint();
      // One who was stopped right after the grant never believed in it.
      if (term.isHeld) candidacy.ok({ token: term.fencingToken, at });
      const end = performance.now() + randomInt(longestTermMs);
      while (believes(term) && !term.signal.aborted && performance.now() < end) {
        await new Promise((resolve) => setTimeout(resolve, STEP_MS));
      }
      history.invoke({ key, op: 'release', owner: candidacy.owner }).ok();
      candidacy = history.invoke({ key, op: 'acquire' });
    };
    locks.lead(key, work, { ttlMs });
  }
}
