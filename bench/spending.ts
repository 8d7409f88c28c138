import { GCProfiler, getHeapStatistics } from 'node:v8';
import { sum } from './measures.js';

/** Costs of a process, with V8's threads for collections and compilation. */
export interface Spending {
  /** Milliseconds of processor time. */
  readonly cpuMs: number;
  /** Allocated on V8's heap. */
  readonly bytes: number;
}

/**
 * Counts from now on until the returned function is called. V8 tells how much of its heap is used before and after each
 * collection. These differences and the growth from beginning to end add up to the bytes that were allocated.
 */
export function spending(): () => Spending {
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
