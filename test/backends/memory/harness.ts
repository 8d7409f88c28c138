import { LockBackend } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { atLeastMs, type BackendHarness } from '../../support/index.js';

/** One world in this process, and any number of clients that it outlives. */
export function memoryHarness(): BackendHarness {
  let world = new MemoryLeaseStore();
  return {
    start: async () => {
      world = new MemoryLeaseStore();
    },
    stop: () => world.close(),
    connect: async () => new LockBackend(world),
    connection: null,
    revoke: async (key) => world.revoke(key),
    leftovers: async (key) => world.held().filter((held) => held === key),
    freeze: null,
    restart: null,
    order: 'fifo',
    shares: true,
    transfers: true,
    namesHolder: true,
    looks: ['token', 'leftMs', 'waiters', 'evict', 'keys'],
    shortTtlMs: atLeastMs(100),
    wakesWithinMs: atLeastMs(650),
  };
}
