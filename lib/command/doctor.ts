import { randomUUID } from 'node:crypto';
import { type Guarantee, type LockBackend, LockService } from '../core/index.js';
import { loadBackendFactory, getSqlDatabaseName } from './open-by-url.js';
import { removeSecrets, type CommandOptions, type Report, getUrl } from './report.js';
import { checkTables } from './tables.js';

const ROUND_TRIP_COUNT = 20;
const TTL_MS = 10_000;
/** One fixed key, because SQL databases keep a row for each key that was ever locked. */
const PROBE_KEY = 'nestjs-distributed-lock:doctor';

const GUARANTEE_TEXTS: Readonly<Record<Guarantee, string>> = {
  consensus: 'consensus: a majority of a cluster remembers each lock, and no single crash makes two holders',
  durable: "durable: one server's disk remembers each lock, also over a restart",
  'best-effort':
    'best-effort: after a failover, or a restart that forgets, two holders are possible for a moment; fence what must not happen twice',
};

export async function examineServer(options: CommandOptions): Promise<Report> {
  if (getSqlDatabaseName(options)) await checkTables(options);
  const service = new LockService(await loadBackendFactory(options));
  try {
    await service.start();
    const roundTrip = await measureRoundTrips(service.backend);
    const { health } = service;
    const { guarantee } = service.backend.store;
    const advice = health.detail?.split('; ') ?? [];
    const lines = [
      `${removeSecrets(getUrl(options))} is ${health.status}`,
      `a lock and its release take ${roundTrip.medianMs.toFixed(2)} ms (median of ${ROUND_TRIP_COUNT}), ${roundTrip.longestMs.toFixed(2)} ms at most`,
      ...(roundTrip.clockSkewMs === undefined ? [] : [`its clock is ${describeSkew(roundTrip.clockSkewMs)}`]),
      ...advice.map((text) => `advice: ${text}`),
      `guarantee: ${GUARANTEE_TEXTS[guarantee]}`,
    ];
    const hasSucceeded = health.status === 'up' && advice.length === 0;
    return { hasSucceeded, lines, data: { status: health.status, guarantee, ...roundTrip, advice } };
  } finally {
    await service.close();
  }
}

interface RoundTripTimes {
  readonly medianMs: number;
  readonly longestMs: number;
  /** Milliseconds by which the server's clock is ahead of this process's; `undefined` where tokens are counters. */
  readonly clockSkewMs?: number | undefined;
}

async function measureRoundTrips({ store }: LockBackend): Promise<RoundTripTimes> {
  const owner = randomUUID();
  const durationsMs: number[] = [];
  let clockSkewMs: number | undefined;
  for (let round = 0; round < ROUND_TRIP_COUNT; round += 1) {
    const startMs = performance.now();
    const attempt = await store.tryAcquire(PROBE_KEY, owner, TTL_MS, { host: 'doctor', pid: process.pid });
    if (attempt.acquired) await store.release(PROBE_KEY, owner);
    durationsMs.push(performance.now() - startMs);
    // Where tokens come from the server's clock, they are microseconds.
    if (attempt.acquired) clockSkewMs = Number(attempt.fencingToken) / 1000 - Date.now();
  }
  durationsMs.sort((a, b) => a - b);
  const isTokenFromClock = clockSkewMs !== undefined && Math.abs(clockSkewMs) < MAX_CLOCK_SKEW_MS;
  return {
    medianMs: durationsMs[ROUND_TRIP_COUNT / 2] ?? 0,
    longestMs: durationsMs.at(-1) ?? 0,
    clockSkewMs: isTokenFromClock ? clockSkewMs : undefined,
  };
}

/** Maximum difference between a token and the clock of this process. A token that differs by more is a counter. */
const MAX_CLOCK_SKEW_MS = 86_400_000;

function describeSkew(clockSkewMs: number): string {
  const ms = Math.round(Math.abs(clockSkewMs));
  return ms < 1 ? 'as ours' : `${ms} ms ${clockSkewMs > 0 ? 'ahead of' : 'behind'} ours`;
}
