import { randomInt } from 'node:crypto';
import { LockBackendError, type LockHandle, LockLostError, type LockService } from 'nestjs-distributed-lock/core';
import { HistoryRecorder } from './history.js';

export interface Leading {
  readonly keys: readonly string[];
  readonly ttlMs: number;
  /** Where to write the history, as which process. */
  readonly history: string;
  readonly proc: string;
}

const STEP_MS = 2;
/** Others wait already when a term ends: a leader stands again a third of the TTL, at most a second, after it began. */
const shortestTermMs = ({ ttlMs }: Leading): number => Math.min(1_000, ttlMs / 3);
const SPREAD_MS = 60;
const PLAIN_TURNS = 3;

/** Stands for offices until the service is closed, serves short terms, and writes down when it believed to lead. */
export function stand(locks: LockService, how: Leading): void {
  const history = new HistoryRecorder(how.history, how.proc);
  for (const key of how.keys) locks.lead(key, termsOf(key, how, history), { ttlMs: how.ttlMs });
}

/** The same under plain locks, a few times. */
export async function takeTurns(locks: LockService, how: Leading): Promise<void> {
  const history = new HistoryRecorder(how.history, how.proc);
  const take = async (key: string): Promise<void> => {
    const work = termsOf(key, how, history);
    for (let turn = 0; turn < PLAIN_TURNS; turn += 1) {
      await locks.withLock(key, work, { ttlMs: how.ttlMs, waitMs: 30_000 }).catch(forgiveDelay);
      // As a leader does, so that others wait already.
      await later(shortestTermMs(how));
    }
  };
  await Promise.all(how.keys.map(take));
  history.close();
}

function termsOf(key: string, how: Leading, history: HistoryRecorder): (lock: LockHandle) => Promise<void> {
  let candidacy = history.invoke({ key, op: 'acquire' });
  const believes = (lock: LockHandle): boolean => {
    const at = process.hrtime.bigint();
    // Work knows of its end by the signal alone: a lock that is released under it tells nobody.
    const goesOn = !lock.signal.aborted;
    history.mark({ key, op: goesOn ? 'held' : 'lost', owner: candidacy.owner }, at);
    return goesOn;
  };
  return async (lock) => {
    const at = process.hrtime.bigint();
    // One who was stopped right after the grant never believed in it.
    if (lock.isHeld) candidacy.ok({ token: lock.fencingToken, at });
    const end = performance.now() + shortestTermMs(how) + randomInt(SPREAD_MS);
    while (believes(lock) && performance.now() < end) await later(STEP_MS);
    history.invoke({ key, op: 'release', owner: candidacy.owner }).ok();
    candidacy = history.invoke({ key, op: 'acquire' });
  };
}

/** A busy machine may renew too late, or hear too late of a grant: the work knew, and its history says so. */
function forgiveDelay(error: unknown): void {
  if (!(error instanceof LockLostError || error instanceof LockBackendError)) throw error;
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
