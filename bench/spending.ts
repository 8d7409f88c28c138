import { GCProfiler, getHeapStatistics } from 'node:v8';
import { sum } from './measures.js';

/** Costs of a process, including V8's threads for garbage collection and compilation. */
export interface Spending {
  /** Milliseconds of processor time. */
  readonly cpuMs: number;
  /** Number of bytes allocated on V8's heap. */
  readonly bytes: number;
}

/**
 * Starts to measure, and returns a function that stops and returns the costs. V8 tells the size of its heap before and
 * after each collection. These differences and the growth from beginning to end add up to the allocated bytes.
 */
export function measureSpending(): () => Spending {
  const collections = new GCProfiler();
  collections.start();
  const bytesBefore = getHeapStatistics().used_heap_size;
  const cpuBefore = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(cpuBefore);
    const grown = getHeapStatistics().used_heap_size - bytesBefore;
    const collected = collections
      .stop()
      .statistics.map(
        ({ beforeGC, afterGC }) => beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize,
      );
    return { cpuMs: (user + system) / 1_000, bytes: grown + sum(collected) };
  };
}
