import { systemClock, type Timer } from '../../../core/index.js';

const MAX_INTERVAL_MS = 3_600_000;

/**
 * Calls `reap` in the background, again and again, until the returned function is called. Calls it again at once where it
 * resolves to true: there may be more to delete. Never calls it where `idleMs` is infinite.
 */
export function reapRegularly(reap: (idleMs: number) => Promise<boolean>, idleMs: number): () => void {
  let timer: Timer | undefined;
  let isOver = !Number.isFinite(idleMs);
  const intervalMs = Math.min(idleMs, MAX_INTERVAL_MS);
  const runRound = async (): Promise<void> => {
    // A failure is seen in `health`, and the next round repeats it.
    const mayBeMore = await reap(idleMs).catch(() => false);
    schedule(mayBeMore ? 0 : intervalMs);
  };
  const schedule = (delayMs: number): void => {
    if (!isOver) timer = systemClock.schedule(delayMs, () => void runRound(), { background: true });
  };
  schedule(intervalMs);
  return () => {
    isOver = true;
    timer?.cancel();
  };
}
