import { Redis } from 'ioredis';
import type { LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { aborted, UNRENEWED_TTL_MS } from '../../conformance/contract.js';

/** Time after which the server tracks the key of a new lock. */
export const TRACKED_MS = 60;

/** Resolves when the holder of a new lock was told that an operator has deleted its key. */
export async function untilToldOfDeletion(locks: LockService, operator: Redis): Promise<void> {
  const lock = await locks.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
  await untilTracked();
  const told = untilLost(lock);
  await operator.del('lock:{key}');
  await told;
}

/** Resolves to the time at which the holder is told that its lock is lost. */
export function untilLost({ signal }: LockHandle): Promise<number> {
  return aborted(signal);
}

export function untilTracked(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
}

/** Resolves to the number of connections whose keys the server tracks. */
export async function countTrackedClients(operator: Redis): Promise<number> {
  const [, count] = /^tracking_clients:(\d+)/mu.exec(await operator.info('clients')) ?? [];
  return Number(count);
}
