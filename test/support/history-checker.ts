import { type Grant, grantsByKey } from './grants.js';
import { groupBy } from './group-by.js';
import type { Operation } from './history.js';
import { fitTogether, reads, wantsAll } from './wanted.js';

/** Two records that cannot both be right. */
export interface Violation {
  readonly rule: 'exclusion' | 'fenced exclusion' | 'token order' | 'token uniqueness' | 'resource order';
  readonly key: string;
  readonly first: object;
  readonly second: object;
  /** All of it for a reader. */
  readonly message: string;
}

/** A time span in which a holder may lose its key without a release: its lease expires, the server is flushed or replaced. */
export interface LossWindow {
  /** @default every key */
  readonly key?: string;
  /** @default whoever holds then */
  readonly owner?: string;
  readonly from: bigint;
  /** @default for ever after */
  readonly to?: bigint;
}

/** One write as the resource saw it, in the resource's own order. */
export interface ResourceWrite {
  readonly key: string;
  readonly token: bigint;
  readonly owner: string;
  readonly proc: string;
  readonly accepted: boolean;
}

/**
 * Did those who believed to have one key at a time always fit together? Exact: a history is linearizable if and only if
 * the spans from "acquire returned" to "release invoked" fit, because fewer always do. Where beliefs are marked, they are
 * what counts.
 */
export function checkExclusion(history: readonly Operation[]): Violation | null {
  for (const [key, grants] of grantsByKey(history)) {
    let present: Grant[] = [];
    const byStart = grants.toSorted(
      (a, b) => compare(a.acquire.ok, b.acquire.ok) || compare(a.believedUntil, b.believedUntil),
    );
    for (const grant of byStart) {
      present = present.filter(({ believedUntil }) => grant.acquire.ok < believedUntil);
      const [last] = present.toSorted((a, b) => compare(b.believedUntil, a.believedUntil));
      present.push(grant);
      if (last && !fitTogether(present.map(({ acquire }) => acquire.owner))) {
        return violation('exclusion', key, last, grant);
      }
    }
  }
  return null;
}

/**
 * Is there an order of the grants, that of their tokens, in which each could take the key after the one before had lost it?
 * Exact, given all windows in which keys could be lost; a window may end any number of grants.
 */
export function checkFencedExclusion(
  history: readonly Operation[],
  losses: readonly LossWindow[] = [],
): Violation | null {
  for (const [key, grants] of grantsByKey(history)) {
    const byToken = grants.toSorted((a, b) => compare(tokenOf(a), tokenOf(b)));
    let previous: Grant | undefined;
    let freeFrom: bigint | undefined = 0n;
    for (const grant of byToken) {
      const { acquire } = grant;
      if (previous !== undefined && (tokenOf(previous) === tokenOf(grant) || freeFrom === undefined)) {
        return violation('fenced exclusion', key, previous, grant);
      }
      const takenAt = latest(freeFrom ?? 0n, acquire.inv);
      if (previous !== undefined && takenAt > acquire.ok) return violation('fenced exclusion', key, previous, grant);
      freeFrom = earliestEnd(grant, takenAt, losses);
      previous = grant;
    }
  }
  return null;
}

/**
 * Does a grant that began after another had been completed always have the higher token? Two shares of a key are never
 * compared: neither keeps the other out.
 */
export function checkTokenOrder(history: readonly Operation[]): Violation | null {
  for (const [key, grants] of grantsByKey(history)) {
    const byReturn = grants.toSorted((a, b) => compare(a.acquire.ok, b.acquire.ok));
    let completed = 0;
    let [highest, highestAlone]: (Grant | undefined)[] = [];
    for (const grant of grants.toSorted((a, b) => compare(a.acquire.inv, b.acquire.inv))) {
      for (let done = byReturn[completed]; done !== undefined && done.acquire.ok < grant.acquire.inv;) {
        highest = higher(highest, done);
        if (wantsAll(done.acquire.owner)) highestAlone = higher(highestAlone, done);
        done = byReturn[(completed += 1)];
      }
      const before = wantsAll(grant.acquire.owner) ? highest : highestAlone;
      if (before !== undefined && tokenOf(before) >= tokenOf(grant)) {
        return violation('token order', key, before, grant);
      }
    }
  }
  return null;
}

/**
 * Did the resource accept exactly the writes whose token was not below that of anybody before who had the key alone, and
 * has each token one owner? Readers of one process may have one together.
 */
export function checkResourceOrder(writes: readonly ResourceWrite[]): Violation | null {
  for (const [key, ofKey] of groupBy(writes, (write) => write.key)) {
    let newest: ResourceWrite | undefined;
    const owners = new Map<bigint, ResourceWrite>();
    for (const write of ofKey) {
      const namesake = owners.get(write.token) ?? write;
      const isTogether = reads(namesake.owner) && reads(write.owner);
      if (namesake.owner !== write.owner && !isTogether) return violation('token uniqueness', key, namesake, write);
      owners.set(write.token, namesake);
      const fresh = newest === undefined || write.token >= newest.token;
      if (fresh !== write.accepted) return violation('resource order', key, newest ?? write, write);
      if (fresh && wantsAll(write.owner)) newest = write;
    }
  }
  return null;
}

/** The earliest instant, from `takenAt` on, at which the grant can have ended; undefined: it cannot. */
function earliestEnd({ acquire, release }: Grant, takenAt: bigint, losses: readonly LossWindow[]): bigint | undefined {
  const ends = release === undefined ? [] : [latest(takenAt, release.inv)];
  for (const { key = acquire.key, owner = acquire.owner, from, to } of losses) {
    const end = latest(takenAt, from);
    if (key === acquire.key && owner === acquire.owner && (to === undefined || end <= to)) ends.push(end);
  }
  return ends.toSorted(compare)[0];
}

function higher(one: Grant | undefined, other: Grant): Grant {
  return one !== undefined && tokenOf(one) >= tokenOf(other) ? one : other;
}

function tokenOf({ acquire }: Grant): bigint {
  if (acquire.token === undefined) throw new TypeError(`A grant without a token: ${show(acquire)}`);
  return acquire.token;
}

function violation(rule: Violation['rule'], key: string, first: object, second: object): Violation {
  return { rule, key, first, second, message: `${rule} of "${key}" violated by\n  ${show(first)}\n  ${show(second)}` };
}

function show(record: object): string {
  return JSON.stringify(record, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function latest(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
