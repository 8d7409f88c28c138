import { createHash, randomBytes } from 'node:crypto';
import {
  assertKey,
  assertWhole,
  Deadline,
  type GivenBackend,
  isLockError,
  type LeaseStore,
  type LockBackend,
  LockBackendError,
  LockConfigurationError,
  openBackend,
  runOutsideLocks,
  ownMetadata,
  refuseOption,
} from '../core/index.js';
import type { LockAcquireResult, LockStore } from './lock-store.js';

const MAX_TTL_MS = 30 * 86_400_000;

/** Maximum number of leases whose owners are remembered. The store looks up the owners of further leases. */
const MAX_REMEMBERED_LEASES = 100_000;

type StoreWithLook = LeaseStore & Required<Pick<LeaseStore, 'look'>>;

/**
 * Returns a store for `@nestjs/locks`, on any backend whose leases each have a TTL of their own. Register the store
 * with the package's `LocksStorage`. Nest opens and closes it with the application. The store closes its backend, as a
 * `LockService` does.
 * @throws LockConfigurationError for a backend whose TTL is a session's: etcd, ZooKeeper, SQL `session` and `row`
 */
export function lockStore(input: GivenBackend): BackendLockStore {
  const backend = runOutsideLocks(() => openBackend(input));
  try {
    return new BackendLockStore(backend);
  } catch (error) {
    if (typeof input === 'function') backend.close().catch(() => undefined);
    throw error;
  }
}

/** Store that `lockStore` returns. Its calls reject with `LockBackendError` when the backend does not answer. */
export class BackendLockStore implements LockStore, AsyncDisposable {
  readonly #store: StoreWithLook;
  /** Owners of this process's leases in the backend, by the hash of the key and owner that `@nestjs/locks` names. */
  readonly #leaseOwners = new Map<string, string>();
  readonly #metadata = ownMetadata(undefined);

  /** @internal */
  constructor(readonly backend: LockBackend) {
    assertCompatible(backend.store);
    this.#store = backend.store;
  }

  /** Acquires a free key. The fencing token grows with each acquisition of the key. */
  async acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    const ownerHash = hashOwner(key, owner);
    // Each attempt has a new lease owner. Hence a held key is refused to everybody, also to its holder.
    const leaseOwner = ownerHash + randomBytes(16).toString('base64url');
    const request = {
      owner: leaseOwner,
      ttlMs: this.#toSupportedTtlMs(ttl),
      metadata: this.#metadata,
      deadline: Deadline.after(0),
    };
    const lease = await runOutsideLocks(() => this.backend.acquire(key, request));
    if (!lease) return { acquired: false };
    this.#rememberLeaseOwner(ownerHash, leaseOwner);
    return { acquired: true, fencingToken: Number(lease.fencingToken) };
  }

  async renew(key: string, owner: string, ttl: number): Promise<boolean> {
    const ttlMs = this.#toSupportedTtlMs(ttl);
    const ownerHash = hashOwner(key, owner);
    return this.#sendRequest('renew', key, async () => {
      const leaseOwner = this.#leaseOwners.get(ownerHash) ?? (await this.#findLeaseOwner(key, ownerHash));
      const isRenewed = leaseOwner !== undefined && (await this.#store.renew(key, leaseOwner, ttlMs));
      if (!isRenewed) this.#leaseOwners.delete(ownerHash);
      return isRenewed;
    });
  }

  /**
   * Frees the key. Tries again in the background after a failure: the key must not stay held for the rest of a long
   * TTL.
   */
  async release(key: string, owner: string): Promise<boolean> {
    const ownerHash = hashOwner(key, owner);
    const rememberedOwner = this.#leaseOwners.get(ownerHash);
    this.#leaseOwners.delete(ownerHash);
    try {
      return await this.#sendRequest('release', key, async () => {
        // Some stores report success for a lease that has expired. Hence the store is first asked who holds the key.
        const leaseOwner = await this.#findLeaseOwner(key, ownerHash);
        return leaseOwner !== undefined && this.#store.release(key, leaseOwner);
      });
    } catch (error) {
      if (rememberedOwner !== undefined) this.#releaseInBackground(key, rememberedOwner);
      throw error;
    }
  }

  /**
   * Starts the backend; Nest calls it. The application also starts when the server cannot be reached.
   * @throws LockConfigurationError the backend can never work
   */
  onModuleInit(): Promise<void> {
    return runOutsideLocks(() => this.backend.start());
  }

  /** Closes the backend; Nest calls it after the package has released its locks. */
  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Closes the backend. Locks that are still held end by their TTL. Further calls do nothing. */
  close(): Promise<void> {
    return this.backend.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #findLeaseOwner(key: string, ownerHash: string): Promise<string | undefined> {
    const { holder } = await this.#store.look(key);
    return holder?.owner.startsWith(ownerHash) === true ? holder.owner : undefined;
  }

  #rememberLeaseOwner(ownerHash: string, leaseOwner: string): void {
    this.#leaseOwners.delete(ownerHash);
    this.#leaseOwners.set(ownerHash, leaseOwner);
    const [oldestHash] = this.#leaseOwners.keys();
    if (this.#leaseOwners.size > MAX_REMEMBERED_LEASES && oldestHash !== undefined)
      this.#leaseOwners.delete(oldestHash);
  }

  #releaseInBackground(key: string, owner: string): void {
    const request = { owner, ttlMs: MAX_TTL_MS, metadata: this.#metadata, deadline: Deadline.after(0) };
    // `leaveQueue` also releases a lease that `owner` holds, and repeats the release after a failure.
    runOutsideLocks(() => this.backend.leaveQueue(key, request));
  }

  /** Returns the store's minimum TTL if `ttl` is shorter: a lease may last longer than requested. */
  #toSupportedTtlMs(ttl: number): number {
    assertWhole('ttl', ttl, 1, MAX_TTL_MS);
    return Math.max(ttl, this.#store.traits?.ttlLimits?.minMs ?? 0);
  }

  async #sendRequest<T>(operation: string, key: string, request: () => Promise<T>): Promise<T> {
    try {
      return await runOutsideLocks(request);
    } catch (cause) {
      if (isLockError(cause)) throw cause;
      throw new LockBackendError(key, { backend: this.backend.name, operation, cause });
    }
  }
}

/**
 * Returns a hash of the key and its owner, because stores accept only short owners of plain characters. UTF-16 has
 * different bytes for any two texts, also for malformed ones.
 */
function hashOwner(key: string, owner: string): string {
  assertKey(key);
  if (typeof owner !== 'string') refuseOption('owner', 'must be a string');
  const hash = createHash('sha256').update(`${key.length}:${key}${owner}`, 'utf16le');
  return hash.digest().subarray(0, 18).toString('base64url');
}

/** @throws LockConfigurationError when `@nestjs/locks` cannot use the store */
function assertCompatible(store: LeaseStore): asserts store is StoreWithLook {
  const { name, traits: { endsWith = 'ttl', writesWithoutOwnerCheck = false } = {} } = store;
  if (endsWith !== 'ttl') {
    const reason = `its locks end with the ${endsWith} of a process, and @nestjs/locks gives each lock a TTL of its own`;
    throw new LockConfigurationError(`${name} cannot be a lock store: ${reason}`, 'backend');
  }
  if (writesWithoutOwnerCheck) {
    const reason = 'it compares owners in one step and writes in the next, and @nestjs/locks asks for both in one';
    throw new LockConfigurationError(`${name} cannot be a lock store: ${reason}. Choose another mode`, 'backend');
  }
  if (store.look) return;
  throw new LockConfigurationError(`${name} cannot be a lock store: it has no look()`, 'backend');
}
