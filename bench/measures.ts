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

/** Claim of one visit: when it was granted and given back, and its part of the lock, of which 1 is the whole. */
export const VISIT_FIELDS = 3;

/** Tolerance for sums of fractions. */
const ROUNDING = 1e-9;

/**
 * Counts the grants that made the parts of all holders more than the whole.
 * @param visits times of acquisition and release and the part, in turns, for each process
 */
export function countOverlaps(visits: readonly Float64Array[]): number {
  const events = visits.flatMap((all) =>
    Array.from({ length: all.length / VISIT_FIELDS }, (_, place) => {
      const [entered = NaN, left = NaN, part = NaN] = all.subarray(place * VISIT_FIELDS);
      return [
        { at: entered, change: part },
        { at: left, change: -part },
      ];
    }).flat(),
  );
  events.sort((a, b) => a.at - b.at || a.change - b.change);
  let [found, held] = [0, 0];
  for (const { change } of events) {
    held += change;
    if (change > 0 && held > 1 + ROUNDING) found += 1;
  }
  return found;
}
