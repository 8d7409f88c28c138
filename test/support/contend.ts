import { randomUUID } from 'node:crypto';
import { Deadline, type LockBackend } from 'nestjs-distributed-lock/core';
import type { AcquireRequest } from '../../lib/core/leasing/lease-request.js';
import type { Lease } from '../../lib/core/leasing/lease.js';

export interface ContendOptions extends Partial<AcquireRequest> {
  /** @default 0 */
  readonly waitMs?: number;
}

/** Asks a backend itself, so that nobody of this process waits for anybody else of it. Nobody renews the lease. */
export function contend(
  backend: LockBackend,
  key: string,
  { waitMs = 0, ...rest }: ContendOptions = {},
): Promise<Lease | null> {
  return backend.acquire(key, {
    owner: randomUUID(),
    ttlMs: 30_000,
    deadline: Deadline.after(waitMs),
    metadata: { host: 'somewhere', pid: process.pid, label: 'contender' },
    ...rest,
  });
}

/** `contend` where the key must be free, or become free. */
export async function win(...args: Parameters<typeof contend>): Promise<Lease> {
  const lease = await contend(...args);
  if (!lease) throw new Error(`${args[1]} should have been free`);
  return lease;
}
