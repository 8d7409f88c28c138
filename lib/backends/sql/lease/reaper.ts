import { systemClock, type Timer } from '../../../core/index.js';

const MAX_INTERVAL_MS = 3_600_000;

/**
 * Calls `reap` in the background until the returned function is called, and never where `idleMs` is infinite. A result
 * of true means that there may be more to delete.
 */
export function reapRegularly(reap: (idleMs: number) => Promise<boolean>, idleMs: number): () => void {
  let timer: Timer | undefined;
  let isStopped = !Number.isFinite(idleMs);
  const intervalMs = Math.min(idleMs, MAX_INTERVAL_MS);
  const runRound = async (): Promise<void> => {
    // `health` reports the failure, and the next round tries again.
    const mayBeMore = await reap(idleMs).catch(() => false);
    schedule(mayBeMore ? 0 : intervalMs);
  };
  const schedule = (delayMs: number): void => {
    if (!isStopped) timer = systemClock.schedule(delayMs, () => void runRound(), { background: true });
  };
  schedule(intervalMs);
  return () => {
    isStopped = true;
    timer?.cancel();
  };
}
