import type { LeaseStore } from 'nestjs-distributed-lock/core';

/** A store that keeps its leases in another one, and differs from it as `own` says. */
export function storeLike(inner: LeaseStore, own: Partial<LeaseStore> & Pick<LeaseStore, 'name'>): LeaseStore {
  return {
    guarantee: 'durable',
    tryAcquire: (...call) => inner.tryAcquire(...call),
    renew: (...call) => inner.renew(...call),
    release: (...call) => inner.release(...call),
    close: async () => undefined,
    ...own,
  };
}
