/** Type `LockAcquireResult` of `@nestjs/locks`. */
export type LockAcquireResult = { acquired: true; fencingToken: number } | { acquired: false };

/** Interface `LockStore` of `@nestjs/locks`. It is copied, because this library does not depend on that package. */
export interface LockStore {
  /** Acquires a free key for `ttl` milliseconds. A key that `owner` itself holds is not acquired again. */
  acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult>;
  /**
   * Sets the time to live to `ttl` milliseconds. Returns `false`, and changes nothing, when `owner` does not hold the
   * key.
   */
  renew(key: string, owner: string, ttl: number): Promise<boolean>;
  /** Frees the key. Returns `false`, and changes nothing, when `owner` does not hold the key. */
  release(key: string, owner: string): Promise<boolean>;
}
