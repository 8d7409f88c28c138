import { type Claim, parseClaim, fits } from '../contract/claim.js';
import type { KeyHolder, KeyWaiter, LeaseState } from '../contract/key-state.js';
import { MAX_WAITERS } from '../contract/key-state.js';
import type { RefusedLease } from '../contract/lease-store.js';
import { unpackHolder } from '../contract/holder.js';
import { isHolderByIndex } from './obstacle.js';

/** Owner's claim to a key. The owner's name encodes the part of the key, see `parseClaim`. */
export interface LineEntry {
  readonly owner: string;
  /** Time at which the claim expires, in milliseconds by the server's clock. */
  readonly until: number;
  /** Fencing token of a holder. Absent: the claim waits. */
  readonly token?: bigint;
  /** Description of the owner's process, see `packHolder`. */
  readonly description: string;
}

/** Claims to a key in order of arrival. */
export type Line = readonly LineEntry[];

/** Result of a request for a key: the new line, and the granted entry if there is one. */
export interface ClaimResult {
  readonly line: Line;
  /** Absent: the owner waits, or was not added to the line. */
  readonly granted?: LineEntry & { readonly token: bigint };
}

const claimOfEntry = ({ owner }: LineEntry): Claim => parseClaim(owner);

export function withoutExpired(line: Line, now: number): Line {
  return line.filter(({ until }) => until > now);
}

/**
 * Returns the line after an owner has asked for the key. A holder renews, an owner whose claim fits becomes a holder,
 * and any other owner waits.
 * @param waitsUntil expiry of a waiting claim. `undefined`: a claim that does not fit is not added
 */
export function applyClaim(
  line: Line,
  { owner, until, description }: LineEntry,
  waitsUntil: number | undefined,
  nextToken: bigint,
): ClaimResult {
  const index = line.findIndex((entry) => entry.owner === owner);
  const ownEntry = line[index];
  const withEntry = (entry: LineEntry): Line => (index < 0 ? [...line, entry] : line.with(index, entry));
  const entriesAhead = index < 0 ? line : line.slice(0, index);
  if (ownEntry?.token !== undefined || fits(parseClaim(owner), entriesAhead.map(claimOfEntry))) {
    const granted = { owner, until, description, token: ownEntry?.token ?? nextToken };
    return { line: withEntry(granted), granted };
  }
  if (waitsUntil === undefined) return { line };
  return { line: withEntry({ owner, until: waitsUntil, description: ownEntry?.description ?? description }) };
}

/** Returns the line with the owner's lease until `until`, or `undefined` if the owner is no holder. */
export function withRenewal(line: Line, owner: string, until: number): Line | undefined {
  const index = line.findIndex((entry) => entry.owner === owner);
  const ownEntry = line[index];
  return ownEntry?.token === undefined ? undefined : line.with(index, { ...ownEntry, until });
}

/**
 * Returns the line in which `newEntry` takes the place and the token of `owner`, or `undefined` if `owner` is no
 * holder. A repeated call renews the lease of the new owner.
 */
export function withNewOwner(line: Line, owner: string, newEntry: LineEntry): Line | undefined {
  const renewedLine = withRenewal(line, newEntry.owner, newEntry.until);
  if (renewedLine) return renewedLine;
  const index = line.findIndex((entry) => entry.owner === owner);
  const token = line[index]?.token;
  return token === undefined ? undefined : line.with(index, { ...newEntry, token });
}

/** Returns the line without the owner, or the same object if the owner is not in it. */
export function withoutOwner(line: Line, owner: string): Line {
  return line.some((entry) => entry.owner === owner) ? line.filter((entry) => entry.owner !== owner) : line;
}

export function isHolder(line: Line, owner: string): boolean {
  return line.some((entry) => entry.owner === owner && entry.token !== undefined);
}

/** Returns the owners of waiting claims that fit now. Each becomes a holder when it asks again. */
export function findReadyWaiters(line: Line): string[] {
  const fitsByIndex = isHolderByIndex(line.map(claimOfEntry));
  return line.filter(({ token }, index) => token === undefined && fitsByIndex[index]).map(({ owner }) => owner);
}

/**
 * Returns the refusal of an owner whose claim does not fit, with the time until the first claim ahead of it may end.
 */
export function createRefusal(line: Line, owner: string, now: number): RefusedLease {
  const entriesAhead = line.slice(
    0,
    Math.max(
      0,
      line.findIndex((entry) => entry.owner === owner),
    ),
  );
  const blockingEntries = entriesAhead.length > 0 ? entriesAhead : line;
  const holder = unpackHolder(line[0]?.description ?? '');
  const retryAfterMs = Math.max(0, Math.min(...blockingEntries.map(({ until }) => until)) - now);
  return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
}

export function describeLine(line: Line, now: number): LeaseState {
  const holders: KeyHolder[] = [];
  const waiters: KeyWaiter[] = [];
  for (const { owner, until, token, description } of line) {
    const claimant = { owner, ...unpackHolder(description) };
    if (token === undefined) waiters.push(claimant);
    else holders.push({ ...claimant, fencingToken: token, leftMs: Math.max(0, until - now) });
  }
  const [holder] = holders;
  const listedWaiters = waiters.slice(0, MAX_WAITERS);
  return holder
    ? { holder, ...(holders.length > 1 ? { holders } : {}), waiters: listedWaiters }
    : { waiters: listedWaiters };
}
