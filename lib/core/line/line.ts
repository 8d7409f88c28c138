import { type Claim, claimOf, fits } from '../contract/claim.js';
import type { KeyHolder, KeyWaiter, LeaseState } from '../contract/key-state.js';
import { MAX_WAITERS } from '../contract/key-state.js';
import type { RefusedLease } from '../contract/lease-store.js';
import { unpackHolder } from '../contract/holder.js';

/** Claim to a key. The owner's name tells how much of the key it wants. */
export interface LineEntry {
  readonly owner: string;
  /** Time at which the claim ends by itself, in milliseconds by the clock of the server that keeps the line. */
  readonly until: number;
  /** Token of a holder. Absent: the claim waits. */
  readonly token?: bigint;
  /** Description of the owner's process, see `packHolder`. */
  readonly description: string;
}

/** Claims to a key in order of arrival. Holders are among the first, since a newcomer waits behind all. */
export type Line = readonly LineEntry[];

/** Result of a claim: the new line, with the granted entry if there is one. */
export interface ClaimResult {
  readonly line: Line;
  /** Absent: the owner waits, or is not in the line. */
  readonly granted?: LineEntry & { readonly token: bigint };
}

const claimIn = ({ owner }: LineEntry): Claim => claimOf(owner);

export function withoutExpired(line: Line, now: number): Line {
  return line.filter(({ until }) => until > now);
}

/**
 * Returns the line after an owner has asked for the key. A holder stays one, an owner whose claim fits becomes one, and
 * any other owner waits.
 * @param waitsUntil `undefined`: an owner whose claim does not fit is not put in line
 */
export function applyClaim(
  line: Line,
  { owner, until, description }: LineEntry,
  waitsUntil: number | undefined,
  nextToken: bigint,
): ClaimResult {
  const at = line.findIndex((entry) => entry.owner === owner);
  const present = line[at];
  const put = (entry: LineEntry): Line => (at < 0 ? [...line, entry] : line.with(at, entry));
  const before = at < 0 ? line : line.slice(0, at);
  if (present?.token !== undefined || fits(claimOf(owner), before.map(claimIn))) {
    const granted = { owner, until, description, token: present?.token ?? nextToken };
    return { line: put(granted), granted };
  }
  if (waitsUntil === undefined) return { line };
  return { line: put({ owner, until: waitsUntil, description: present?.description ?? description }) };
}

/** Returns the line with a longer lease of the owner, or `undefined` where the key is not the owner's. */
export function withRenewal(line: Line, owner: string, until: number): Line | undefined {
  const at = line.findIndex((entry) => entry.owner === owner);
  const present = line[at];
  return present?.token === undefined ? undefined : line.with(at, { ...present, until });
}

/** Returns the line without the owner, or the same line where the owner is not in it. */
export function withoutOwner(line: Line, owner: string): Line {
  return line.some((entry) => entry.owner === owner) ? line.filter((entry) => entry.owner !== owner) : line;
}

export function isHolder(line: Line, owner: string): boolean {
  return line.some((entry) => entry.owner === owner && entry.token !== undefined);
}

/** Returns the waiters whose claims fit by now: each becomes a holder when it asks. */
export function findReadyWaiters(line: Line): string[] {
  const claims = line.map(claimIn);
  return line
    .filter((entry, i) => entry.token === undefined && fits(claimIn(entry), claims.slice(0, i)))
    .map(({ owner }) => owner);
}

/** Returns the answer to an owner whose claim does not fit: the holder, and when the first claim before it may end. */
export function createRefusal(line: Line, owner: string, now: number): RefusedLease {
  const before = line.slice(
    0,
    Math.max(
      0,
      line.findIndex((entry) => entry.owner === owner),
    ),
  );
  const others = before.length > 0 ? before : line;
  const holder = unpackHolder(line[0]?.description ?? '');
  const retryAfterMs = Math.max(0, Math.min(...others.map(({ until }) => until)) - now);
  return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
}

export function describeLine(line: Line, now: number): LeaseState {
  const holders: KeyHolder[] = [];
  const waiters: KeyWaiter[] = [];
  for (const { owner, until, token, description } of line) {
    const who = { owner, ...unpackHolder(description) };
    if (token === undefined) waiters.push(who);
    else holders.push({ ...who, fencingToken: token, leftMs: Math.max(0, until - now) });
  }
  const [holder] = holders;
  const inLine = waiters.slice(0, MAX_WAITERS);
  return holder ? { holder, ...(holders.length > 1 ? { holders } : {}), waiters: inLine } : { waiters: inLine };
}
