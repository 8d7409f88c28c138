/** The `LockAcquireResult` of `@nestjs/locks`. */
export type LockAcquireResult = { acquired: true; fencingToken: number } | { acquired: false };

/** The `LockStore` of `@nestjs/locks`, written out: this library does not depend on that package. */
export interface LockStore {
  /** Takes a free key for `owner`, for `ttl` milliseconds. Refused also to the owner who holds it. */
  acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult>;
  /** `false`: `owner` does not hold the key. Nothing is changed then. */
  renew(key: string, owner: string, ttl: number): Promise<boolean>;
  /** `false`: `owner` does not hold the key. Nothing is changed then. */
  release(key: string, owner: string): Promise<boolean>;
}
