const SLEEPS = 40;
/** How late timers are, at least, while other specs run beside this one. */
const LEAST_MS = 20;
/** Beyond that, a longer lease does not help either. */
const WORST_MS = 100;
/** Shortest TTL of leases in the tests of most backends, on a machine that is not slow. */
const SHORT_LEASE_MS = 500;

/** Memory whose first use takes some two milliseconds, and on a machine that is slow to give memory many times as long. */
const NEW_MEMORY_BYTES = 8 * 1024 * 1024;

/**
 * By how much timers are late now: the latest of some sleeps when this spec began. A machine that is slow to give memory
 * will be late when the load comes, though the first specs find it quiet.
 */
const lateMs = Math.min(Math.max(measureLatenessMs(), measureNewMemoryMs(), LEAST_MS), WORST_MS);

/** This time, or longer on a machine that is slow now: sixty times what a timer is late. */
export function atLeastMs(ms: number): number {
  return Math.max(ms, Math.ceil(lateMs * 60));
}

/** A time limit of so many milliseconds, or as many times longer as the shortest leases are on a machine that is slow now. */
export function timeLimitOf(ms: number): number {
  return Math.ceil((ms * atLeastMs(SHORT_LEASE_MS)) / SHORT_LEASE_MS);
}

function measureNewMemoryMs(): number {
  const startedAt = performance.now();
  Buffer.allocUnsafeSlow(NEW_MEMORY_BYTES).fill(1);
  return performance.now() - startedAt;
}

/** Sleeps in place, because programs that are run as CommonJS modules cannot await timers while they are loaded. */
function measureLatenessMs(): number {
  const neverChanged = new Int32Array(new SharedArrayBuffer(4));
  let most = 0;
  for (let i = 0; i < SLEEPS; i += 1) {
    const due = performance.now() + 1;
    Atomics.wait(neverChanged, 0, 0, 1);
    most = Math.max(most, performance.now() - due);
  }
  return most;
}
