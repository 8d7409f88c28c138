/** Returns milliseconds on a clock that all processes of this machine share, and that never jumps. */
export const now = (): number => performance.now() + offsetMs;

const offsetMs = measureOffset();

/**
 * Measures the difference between `performance.now()` and CLOCK_MONOTONIC. The smallest difference had the least delay
 * between its two readings.
 */
function measureOffset(): number {
  const differences = Array.from({ length: 1_000 }, () => {
    const [seconds, nanoseconds] = process.hrtime();
    const sharedMs = seconds * 1e3 + nanoseconds / 1e6;
    return performance.now() - sharedMs;
  });
  return -Math.min(...differences);
}
