/** Returns the percentiles of values by the nearest rank; `NaN` where there are no values. */
export function percentiles(values: ArrayLike<number>, percents: readonly number[]): number[] {
  const sorted = Float64Array.from(values).toSorted();
  return percents.map((percent) => sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? NaN);
}

/** Returns the median; for an even number of values the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = NaN, high = NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i += 1) sum += values[i] ?? 0;
  return sum / values.length;
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

export function concatenate(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(sum(parts.map(({ length }) => length)));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * Counts the acquisitions of a lock that another caller held.
 * @param visits times of acquisition and release in turns, for each process
 */
export function countOverlaps(visits: readonly Float64Array[]): number {
  const all = visits.flatMap((part) =>
    Array.from({ length: part.length / 2 }, (_, place) => ({
      entered: part[place * 2] ?? NaN,
      left: part[place * 2 + 1] ?? NaN,
    })),
  );
  all.sort((a, b) => a.entered - b.entered);
  let [found, lastLeft] = [0, -Infinity];
  for (const { entered, left } of all) {
    if (entered < lastLeft) found += 1;
    lastLeft = Math.max(lastLeft, left);
  }
  return found;
}
