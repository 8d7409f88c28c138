import { type LeaseStore, PollingBackend } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import type { BackendHarness } from '../conformance/backend-harness.js';

/** One world in this process, and any number of clients that it outlives. */
export function memoryHarness(): BackendHarness {
  let world = new MemoryLeaseStore();
  const client = (): LeaseStore => ({
    name: world.name,
    guarantee: world.guarantee,
    tryAcquire: (...request) => world.tryAcquire(...request),
    renew: (...request) => world.renew(...request),
    release: (...request) => world.release(...request),
    isHeldBy: (...request) => world.isHeldBy(...request),
    watch: (...request) => world.watch(...request),
    close: async () => undefined,
  });
  return {
    start: async () => {
      world = new MemoryLeaseStore();
    },
    stop: () => world.close(),
    connect: async () => new PollingBackend(client()),
    connection: null,
    revoke: async (key) => world.revoke(key),
    leftovers: async (key) => world.keys().filter((held) => held === key),
    freeze: null,
    restart: null,
    order: 'none',
    namesHolder: true,
    shortTtlMs: 100,
    wakesWithinMs: 100,
  };
}
