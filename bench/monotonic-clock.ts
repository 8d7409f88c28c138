/** Milliseconds on a clock that all processes of this machine share, and that never jumps. */
export const now = (): number => performance.now() + offset;

const offset = offsetOfThisProcess();

/** Both count from CLOCK_MONOTONIC; the smallest of several differences has waited least between the two readings. */
function offsetOfThisProcess(): number {
  const differences = Array.from({ length: 1_000 }, () => {
    const [seconds, nanoseconds] = process.hrtime();
    const shared = seconds * 1e3 + nanoseconds / 1e6;
    return performance.now() - shared;
  });
  return -Math.min(...differences);
}
