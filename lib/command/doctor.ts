import { randomUUID } from 'node:crypto';
import { type Guarantee, type LockBackend, LockService } from '../core/index.js';
import { openBackend, sqlNameOf } from './places.js';
import { addressIn, type CommandOptions, type Report, urlOf } from './report.js';
import { checkTables } from './tables.js';

const ROUNDS = 20;
const TTL_MS = 10_000;

const GUARANTEES: Readonly<Record<Guarantee, string>> = {
  consensus: 'consensus: a majority of a cluster remembers each lock, and no single crash makes two holders',
  durable: "durable: one server's disk remembers each lock, also over a restart",
  'best-effort':
    'best-effort: after a failover, or a restart that forgets, two holders are possible for a moment; fence what must not happen twice',
};

/** The command `doctor`. */
export async function examine(options: CommandOptions): Promise<Report> {
  if (sqlNameOf(options)) await checkTables(options);
  const service = new LockService(await openBackend(options));
  try {
    await service.start();
    const roundTrip = await measure(service.backend);
    const { health } = service;
    const { guarantee } = service.backend.store;
    const advice = health.detail?.split('; ') ?? [];
    const lines = [
      `${addressIn(urlOf(options))} is ${health.status}`,
      `a lock and its release take ${roundTrip.medianMs.toFixed(2)} ms (median of ${ROUNDS}), ${roundTrip.longestMs.toFixed(2)} ms at most`,
      ...(roundTrip.aheadMs === undefined ? [] : [`its clock is ${describeSkew(roundTrip.aheadMs)}`]),
      ...advice.map((each) => `advice: ${each}`),
      `guarantee: ${GUARANTEES[guarantee]}`,
    ];
    const isGood = health.status === 'up' && advice.length === 0;
    return { isGood, lines, data: { status: health.status, guarantee, ...roundTrip, advice } };
  } finally {
    await service.close();
  }
}

interface RoundTrip {
  readonly medianMs: number;
  readonly longestMs: number;
  /** How far the server's clock is ahead of ours; `undefined` where tokens do not follow a clock. */
  readonly aheadMs?: number | undefined;
}

/** Takes a key of its own, again and again. */
async function measure({ store }: LockBackend): Promise<RoundTrip> {
  const owner = randomUUID();
  const key = `nestjs-distributed-lock:doctor:${owner}`;
  const times: number[] = [];
  let aheadMs: number | undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const since = performance.now();
    const attempt = await store.tryAcquire(key, owner, TTL_MS, { host: 'doctor', pid: process.pid });
    if (attempt.acquired) await store.release(key, owner);
    times.push(performance.now() - since);
    if (attempt.acquired) aheadMs = Number(attempt.fencingToken) / 1000 - Date.now();
  }
  times.sort((a, b) => a - b);
  const isClock = aheadMs !== undefined && Math.abs(aheadMs) < A_DAY_MS;
  return { medianMs: times[ROUNDS / 2] ?? 0, longestMs: times.at(-1) ?? 0, aheadMs: isClock ? aheadMs : undefined };
}

/** Tokens that are further from our clock are counters. */
const A_DAY_MS = 86_400_000;

function describeSkew(aheadMs: number): string {
  const ms = Math.round(Math.abs(aheadMs));
  return ms < 1 ? 'as ours' : `${ms} ms ${aheadMs > 0 ? 'ahead of' : 'behind'} ours`;
}
