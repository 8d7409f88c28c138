import type { LeaseAttempt, LeaseStore } from 'nestjs-distributed-lock/core';
import type { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';

export type Call<T> = () => Promise<T>;

/** A store whose network misbehaves as a test says: `carry` gets the call and decides what becomes of it and of its answer. */
export class LossyStore implements LeaseStore {
  readonly name = 'lossy';
  readonly guarantee = 'best-effort';
  readonly asked: string[] = [];
  carry: <T>(call: Call<T>, operation: string) => Promise<T> = (call) => call();
  watch?: NonNullable<LeaseStore['watch']>;

  constructor(readonly inner: MemoryLeaseStore) {}

  tryAcquire(...call: Parameters<MemoryLeaseStore['tryAcquire']>): Promise<LeaseAttempt> {
    return this.#carry('acquire', () => this.inner.tryAcquire(...call));
  }

  renew(...call: Parameters<LeaseStore['renew']>): Promise<boolean> {
    return this.#carry('renew', () => this.inner.renew(...call));
  }

  release(...call: Parameters<LeaseStore['release']>): Promise<boolean> {
    return this.#carry('release', () => this.inner.release(...call));
  }

  async close(): Promise<void> {}

  #carry<T>(operation: string, call: Call<T>): Promise<T> {
    this.asked.push(operation);
    return this.carry(call, operation);
  }
}
