import { describe, expect, it } from '@jest/globals';
import { concatenated, mean, median, overlaps, percentiles } from './measures.js';

describe('what the benchmark makes of its figures', () => {
  it('finds who got in while another one was inside', () => {
    const one = Float64Array.of(0, 1, 4, 5);
    expect(overlaps([one, Float64Array.of(1, 4, 6, 7)])).toBe(0);
    expect(overlaps([one, Float64Array.of(0.5, 0.7, 4.9, 6)])).toBe(2);
    expect(overlaps([Float64Array.of(0, 10), Float64Array.of(1, 2, 3, 4)])).toBe(2);
    expect(overlaps([])).toBe(0);
  });

  it('takes the nearest rank for a percentile', () => {
    const values = Array.from({ length: 200 }, (_, i) => 200 - i);
    expect(percentiles(values, [1, 50, 99, 100])).toEqual([2, 100, 198, 200]);
    expect(percentiles([3, 1, 2], [50])).toEqual([2]);
    expect(percentiles([], [50])).toEqual([NaN]);
  });

  it('has the middle and the mean of what it is given', () => {
    expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, NaN]);
    expect(mean(concatenated([Float64Array.of(1, 2), Float64Array.of(6)]))).toBe(3);
  });
});
