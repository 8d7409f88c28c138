import { systemClock, type Timer } from '../../../core/index.js';

const LONGEST_INTERVAL_MS = 3_600_000;

/** Reaps in the background, some rows at a time, until the returned function ends it. Never where `idleMs` is infinite. */
export function reapRegularly(reap: (idleMs: number) => Promise<void>, idleMs: number): () => void {
  let timer: Timer | undefined;
  let isOver = !Number.isFinite(idleMs);
  const schedule = (): void => {
    const intervalMs = Math.min(idleMs, LONGEST_INTERVAL_MS);
    // A failure is seen in `health`, and the next round repeats it.
    const round = (): unknown =>
      reap(idleMs)
        .catch(() => undefined)
        .then(schedule);
    if (!isOver) timer = systemClock.schedule(intervalMs, round, { background: true });
  };
  schedule();
  return () => {
    isOver = true;
    timer?.cancel();
  };
}
