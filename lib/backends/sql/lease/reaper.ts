import { systemClock, type Timer } from '../../../core/index.js';

const LONGEST_INTERVAL_MS = 3_600_000;

/**
 * Reaps in the background until the returned function ends it: again and again, at once where `reap` says that there may
 * be more. Never where `idleMs` is infinite.
 */
export function reapRegularly(reap: (idleMs: number) => Promise<boolean>, idleMs: number): () => void {
  let timer: Timer | undefined;
  let isOver = !Number.isFinite(idleMs);
  const intervalMs = Math.min(idleMs, LONGEST_INTERVAL_MS);
  const round = async (): Promise<void> => {
    // A failure is seen in `health`, and the next round repeats it.
    const mayBeMore = await reap(idleMs).catch(() => false);
    schedule(mayBeMore ? 0 : intervalMs);
  };
  const schedule = (delayMs: number): void => {
    if (!isOver) timer = systemClock.schedule(delayMs, () => void round(), { background: true });
  };
  schedule(intervalMs);
  return () => {
    isOver = true;
    timer?.cancel();
  };
}
