const TIMERS = 40;
/** Beyond that, a longer lease does not help either. */
const WORST_MS = 60;

/** By how much the latest of some timers was late when this spec began: who shares the processor decides about that. */
const lateMs = Math.min(await latest(), WORST_MS);

/** So long, or longer on a machine that is slow now: forty times what its latest timer is late. */
export function atLeastMs(ms: number): number {
  return Math.max(ms, Math.ceil(lateMs * 40));
}

async function latest(): Promise<number> {
  let most = 0;
  for (let i = 0; i < TIMERS; i += 1) {
    const due = performance.now() + 1;
    await new Promise((resolve) => setTimeout(resolve, 1));
    most = Math.max(most, performance.now() - due);
  }
  return most;
}
