import type { LockService } from 'nestjs-distributed-lock/core';
import { aborted, atLeastMs, type FaultProxy, PATIENT_MS } from '../support/index.js';
import { isJudged } from '../support/judging.js';

const TTL_MS = atLeastMs(500);

/** A holder who reaches his servers through proxies only, and somebody else who reaches them without. */
export interface CutOff {
  readonly alone: LockService;
  readonly other: LockService;
  readonly proxies: readonly FaultProxy[];
  /** How many of them are silent then. @default all */
  readonly silent?: number;
}

/** Runs `rounds`, `lanes` at a time: each has told its holder before the next one had the key. */
export async function toldFirst(
  rounds: number,
  lanes: number,
  round: (place: number) => Promise<number>,
): Promise<void> {
  const leadsMs: number[] = [];
  const lane = async (first: number): Promise<void> => {
    for (let place = first; place < rounds; place += lanes) {
      const leadMs = await round(place);
      if (leadMs >= 0 || isJudged({ lateMs: -leadMs, tookMs: 0 })) leadsMs.push(leadMs);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, first) => lane(first)));
  expect(leadsMs.length).toBeGreaterThan(rounds / 2);
  expect(leadsMs.filter((lead) => lead < 0)).toEqual([]);
}

/** How long the holder knew of its loss when the next one got the key. Closes all that it was given. */
export async function leadOf(key: string, { alone, other, proxies, silent }: CutOff): Promise<number> {
  try {
    const cut = (): void => proxies.slice(0, silent).forEach((proxy) => proxy.pause());
    return await leadAfter(cut, { key, ttlMs: TTL_MS, alone, other });
  } finally {
    for (const proxy of proxies) proxy.resume();
    await Promise.all([alone.close(1_000), other.close(1_000)]);
    await Promise.all(proxies.map((proxy) => proxy.close()));
  }
}

interface Contention extends Pick<CutOff, 'alone' | 'other'> {
  readonly key: string;
  readonly ttlMs: number;
}

/** The same, where `cut` leaves the holder alone with its clock. Closes nothing. */
export async function leadAfter(cut: () => void, { key, ttlMs, alone, other }: Contention): Promise<number> {
  const lock = await alone.acquire(key, { ttlMs });
  let toldAt = Infinity;
  void aborted(lock.signal).then((at) => (toldAt = at));
  const next = other.acquire(key, { ttlMs, waitMs: PATIENT_MS });
  cut();
  const present = await next;
  const grantedAt = performance.now();
  expect(lock.isHeld).toBe(false);
  expect(present.fencingToken).toBeGreaterThan(lock.fencingToken);
  await present.release();
  return grantedAt - toldAt;
}
