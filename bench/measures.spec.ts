import { concatenate, countOverlaps, mean, median, percentiles } from './measures.js';
import { compareWithFloor } from './scenarios/heat.js';
import { measureSpending } from './spending.js';

describe('what the benchmark makes of its figures', () => {
  it('finds who got in while another one was inside', () => {
    const one = Float64Array.of(0, 1, 1, 4, 5, 1);
    expect(countOverlaps([one, Float64Array.of(1, 4, 1, 6, 7, 1)])).toBe(0);
    expect(countOverlaps([one, Float64Array.of(0.5, 0.7, 1, 4.9, 6, 1)])).toBe(2);
    expect(countOverlaps([Float64Array.of(0, 10, 1), Float64Array.of(1, 2, 1, 3, 4, 1)])).toBe(2);
    expect(countOverlaps([])).toBe(0);
  });

  it('finds who got in beyond the permits, and a writer among readers', () => {
    const permits = Array.from({ length: 10 }, (_, place) => Float64Array.of(place, 20, 0.1));
    expect(countOverlaps(permits)).toBe(0);
    expect(countOverlaps([...permits, Float64Array.of(12, 13, 0.1, 20, 21, 0.1)])).toBe(1);
    const readers = [Float64Array.of(0, 5, 0.001), Float64Array.of(1, 3, 0.001)];
    expect(countOverlaps([...readers, Float64Array.of(5, 6, 1)])).toBe(0);
    expect(countOverlaps([...readers, Float64Array.of(4, 6, 1)])).toBe(1);
  });

  it('takes the nearest rank for a percentile', () => {
    const values = Array.from({ length: 200 }, (_, i) => 200 - i);
    expect(percentiles(values, [1, 50, 99, 100])).toEqual([2, 100, 198, 200]);
    expect(percentiles([3, 1, 2], [50])).toEqual([2]);
    expect(percentiles([], [50])).toEqual([NaN]);
  });

  it('has the middle and the mean of what it is given', () => {
    expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, NaN]);
    expect(mean(concatenate([Float64Array.of(1, 2), Float64Array.of(6)]))).toBe(3);
  });

  it('compares neighbours, and takes the median of the ratios', () => {
    const ran = (acquisitions: number, cpuMs: number) => [
      { acquisitions, cpuMs, lastedMs: 100, served: 10, bytes: 0, failures: 0, starved: 0, overtaken: 0, ...UNSEEN },
    ];
    const pairs = [
      { floor: ran(100, 1), own: ran(50, 2) },
      { floor: ran(10, 1), own: ran(8, 3) },
      { floor: ran(200, 4), own: ran(20, 4) },
    ];
    expect(compareWithFloor(pairs)).toEqual({ timesFloor: 0.5, usTimesFloor: 2 });
  });

  it('counts what is allocated, collected or not', () => {
    const stopMeasuring = measureSpending();
    for (let i = 0; i < 500_000; i += 1) kept[i % 1_000] = { a: i, b: i, c: i, d: i };
    // An object has three words of V8's own and four fields, of 8 bytes each. The test runner allocates a little, too.
    const expected = 500_000 * 7 * 8;
    const { bytes } = stopMeasuring();
    expect(bytes).toBeGreaterThan(expected * 0.99);
    expect(bytes).toBeLessThan(expected * 1.2);
  });
});

const UNSEEN = { waitsMs: new Float64Array(), visits: new Float64Array(), longestWriterMs: 0 };
const kept: unknown[] = [];
