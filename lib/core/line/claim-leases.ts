import { isExclusive } from '../contract/claim.js';
import { type HolderMetadata, packHolder } from '../contract/holder.js';
import type { LeaseState } from '../contract/key-state.js';
import type { AdoptedLease, LeaseAttempt, TransferredLease, RefusedLease } from '../contract/lease-store.js';
import {
  withoutExpired,
  applyClaim,
  isHolder,
  type Line,
  createRefusal,
  withNewOwner,
  withRenewal,
  describeLine,
  withoutOwner,
} from './line.js';
import type { LineStorage, StoredLine } from './line-storage.js';
import { LineChanges } from './line-changes.js';

/** Time after which a waiter is removed from the line if it does not ask again. */
const WAITER_TTL_MS = 5_000;
const MAX_RETRY_MS = 1_000;

/** Limits of a line, which is read and written as a whole. Owners beyond the limits poll, without an entry. */
interface LineLimits {
  readonly maxHolders: number;
  readonly maxWaiters: number;
}

const DEFAULT_LIMITS: LineLimits = { maxHolders: 1_000, maxWaiters: 500 };

/** Maximum length of a holder's description. The line has an empty text instead of a longer one. */
const MAX_DESCRIPTION_BYTES = 200;

/**
 * Leases of keys with several holders. Each of these keys has one line of claims, changed by compare-and-swap.
 * An exclusive owner joins the line if the key has one, and otherwise has a plain lease outside of any line.
 */
export class ClaimLeases<Version> {
  /** Exclusive owners whose claims may be in a line. */
  readonly #exclusiveOwners = new Set<string>();
  readonly #changes: LineChanges<Version>;

  constructor(
    private readonly storage: LineStorage<Version>,
    private readonly limits = DEFAULT_LIMITS,
  ) {
    this.#changes = new LineChanges(storage);
  }

  /** Returns whether the owner's lease, if it has one, may be in a line. */
  has(owner: string): boolean {
    return !isExclusive(owner) || this.#exclusiveOwners.has(owner);
  }

  /** Forgets an owner that this process does not use again. */
  forget(owner: string): void {
    this.#exclusiveOwners.delete(owner);
  }

  /** @param mayWait whether the owner may join the line as a waiter, and then has to ask again or to release */
  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    mayWait: boolean,
  ): Promise<LeaseAttempt> {
    if (isExclusive(owner)) this.#exclusiveOwners.add(owner);
    const description = packDescription(metadata);
    const attempt = await this.#changes.changeWithToken<LeaseAttempt>(
      key,
      ({ line, now, uncertaintyMs = 0, nextToken, lease }) => {
        if (lease && lease.owner !== owner) return { line, result: createLeaseRefusal(lease) };
        const isInLine = line.some((entry) => entry.owner === owner);
        const room = getRoom(line, this.limits);
        const mayWaitInLine = mayWait && (isInLine || room.canAddWaiter);
        const claimResult = applyClaim(
          line,
          { owner, until: now + uncertaintyMs + ttlMs, description },
          mayWaitInLine ? now + uncertaintyMs + WAITER_TTL_MS : undefined,
          nextToken,
        );
        if (claimResult.granted && (isInLine || room.canAddHolder)) {
          const { token } = claimResult.granted;
          const result = { acquired: true, fencingToken: token } as const;
          return { line: claimResult.line, result, ...(token === nextToken ? { token } : {}) };
        }
        const nextLine =
          claimResult.granted || isWaiterFresh(line, owner, now + uncertaintyMs) ? line : claimResult.line;
        const refusal = createRefusal(nextLine, owner, now);
        const retryAfterMs = Math.min(refusal.retryAfterMs ?? MAX_RETRY_MS, MAX_RETRY_MS);
        // An owner that found no room must poll this line, too, and must not join another queue of the server.
        return { line: nextLine, result: { ...refusal, retryAfterMs, staysInLine: mayWait } };
      },
    );
    if (!attempt.acquired && attempt.staysInLine !== true) this.#exclusiveOwners.delete(owner);
    return attempt;
  }

  /** Adopts a lease of the line. Also adopts the plain lease of an exclusive owner, and moves it into the line. */
  async adopt(key: string, transferred: TransferredLease, adopted: AdoptedLease): Promise<LeaseAttempt> {
    const { owner, ttlMs, metadata } = adopted;
    const description = packDescription(metadata);
    if (isExclusive(owner)) this.#exclusiveOwners.add(owner);
    const isAdopted = await this.#changes.change(key, ({ line, now, uncertaintyMs = 0, lease, waiters = [] }) => {
      const newEntry = { owner, until: now + uncertaintyMs + ttlMs, description };
      if (lease?.owner === transferred.owner)
        return { line: [{ ...newEntry, token: transferred.fencingToken }, ...waiters], result: true };
      const adoptedLine = withNewOwner(line, transferred.owner, newEntry);
      return { line: adoptedLine ?? line, result: adoptedLine !== undefined };
    });
    if (isAdopted) return { acquired: true, fencingToken: transferred.fencingToken };
    this.#exclusiveOwners.delete(owner);
    return { acquired: false, retryAfterMs: null };
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#changes.change(key, ({ line, now, uncertaintyMs = 0 }) => {
      const renewedLine = withRenewal(line, owner, now + uncertaintyMs + ttlMs);
      return { line: renewedLine ?? line, result: renewedLine !== undefined };
    });
  }

  async release(key: string, owner: string): Promise<boolean> {
    try {
      return await this.#changes.change(key, ({ line }) => ({
        line: withoutOwner(line, owner),
        result: isHolder(line, owner),
      }));
    } finally {
      // A failed release is not repeated once the lease has ended, so that no later call would delete the owner.
      this.#exclusiveOwners.delete(owner);
    }
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { line, now } = await this.storage.read(key, false);
    return isHolder(withoutExpired(line, now), owner);
  }

  /** Resolves to the state of the line, or to `undefined` where the key has none. */
  async look(key: string): Promise<LeaseState | undefined> {
    const { line, now } = await this.storage.read(key, false);
    return line.length > 0 ? describeLine(withoutExpired(line, now), now) : undefined;
  }
}

function packDescription(metadata: HolderMetadata): string {
  const description = packHolder(metadata);
  return Buffer.byteLength(description) > MAX_DESCRIPTION_BYTES ? '' : description;
}

/** Returns whether another holder or waiter may be added. A waiter becomes a holder even if no holder may be added. */
function getRoom(line: Line, { maxHolders, maxWaiters }: LineLimits): { canAddHolder: boolean; canAddWaiter: boolean } {
  const holderCount = line.filter(({ token }) => token !== undefined).length;
  const isFull = line.length >= maxHolders + maxWaiters;
  return {
    canAddHolder: !isFull && holderCount < maxHolders,
    canAddWaiter: !isFull && line.length - holderCount < maxWaiters,
  };
}

/** Returns whether the waiter's entry lasts for half of `WAITER_TTL_MS` or longer, so that no write is needed. */
function isWaiterFresh(line: Line, owner: string, now: number): boolean {
  return line.some((entry) => entry.owner === owner && entry.until > now + WAITER_TTL_MS / 2);
}

function createLeaseRefusal({ leftMs, holder }: NonNullable<StoredLine<unknown>['lease']>): RefusedLease {
  return { acquired: false, retryAfterMs: leftMs, ...(holder ? { holder } : {}) };
}
