import { Deadline, type LeaseAttempt, LockBackend } from 'nestjs-distributed-lock/core';
import type { AcquireRequest } from '../../lib/core/leasing/lease-request.js';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { type Call, LossyStore } from './lossy-store.js';

/** A backend whose store may lose what it likes, in virtual time. */
export class BackendWorld {
  readonly clock = new ManualClock();
  readonly store = new LossyStore(new MemoryLeaseStore(this.clock));
  readonly backend = new LockBackend(this.store, { pollMs: 100, patienceMs: 500 });
  #owners = 0;

  readonly request = (waitMs: number, extra: Partial<AcquireRequest> = {}): AcquireRequest => ({
    owner: `owner ${++this.#owners}`,
    ttlMs: 1_000,
    deadline: Deadline.after(waitMs, this.clock),
    metadata: { host: 'here', pid: 1 },
    ...extra,
  });

  readonly occupy = (): Promise<LeaseAttempt> =>
    this.store.inner.tryAcquire('k', 'stranger', 60_000, { host: 'there', pid: 2 });
}

export const loseReply = async <T>(call: Call<T>): Promise<T> => {
  await call();
  throw new Error('connection lost');
};

export const never = <T>(): Promise<T> => new Promise<T>(() => undefined);
