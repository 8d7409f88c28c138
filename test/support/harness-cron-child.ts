import { oncePer } from 'nestjs-distributed-lock';
import { LockService, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { type Connection, connectBackend } from './harness-connection.js';
import { serve } from './serve.js';

export interface Schedule {
  readonly ticks: number;
  readonly periodMs: number;
  /** When the first tick is, by the wall clock that the processes of a machine share. */
  readonly startsAt: number;
  /** Our own clock is late by this much. */
  readonly clockLateMs: number;
  /** The longest time for which our event loop stands still. */
  readonly blockedMs: number;
}

/** One question for the lock of a tick. */
export interface Try {
  readonly backend: string;
  readonly tick: number;
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly ran: boolean;
}

const services = new Map<string, LockService>();

const now = (): number => performance.timeOrigin + performance.now();

const api = {
  open: async ({ backend, connection }: { backend: string; connection: Connection }) => {
    const locks = new LockService(await connectBackend(connection), { defaults: { waitMs: 0 } });
    services.set(backend, locks);
    await locks.withLock('warm', () => undefined, { waitMs: 20_000 });
  },
  run: async (schedule: Schedule): Promise<Try[]> => {
    const tries: Promise<Try>[] = [];
    for (let tick = 0; tick < schedule.ticks; tick += 1) {
      const dueAt = schedule.startsAt + tick * schedule.periodMs + schedule.clockLateMs;
      await new Promise((resolve) => setTimeout(resolve, dueAt - now()));
      block(Math.random() * schedule.blockedMs);
      for (const [backend, locks] of services) tries.push(attempt(backend, locks, tick, schedule));
    }
    return Promise.all(tries);
  },
  /** Begins a run on every backend, and ends none. Resolves in the middle of them. */
  hang: async ({ periodMs, ttlMs }: { periodMs: number; ttlMs: number }) => {
    const { minHoldMs = 0 } = oncePer(periodMs);
    const begin = (locks: LockService): Promise<void> =>
      new Promise((begun, failed) => {
        const job = (): Promise<void> => new Promise(() => begun());
        locks.withLock('job', job, { minHoldMs, ttlMs, waitMs: 30_000 }).catch(failed);
      });
    await Promise.all(Array.from(services.values(), begin));
  },
};

/** As `@Locked` does with these options. */
async function attempt(backend: string, locks: LockService, tick: number, { periodMs }: Schedule): Promise<Try> {
  const { minHoldMs = 0 } = oncePer(periodMs);
  const askedAt = now();
  let answeredAt = askedAt;
  const job = (): void => {
    answeredAt = now();
  };
  const ran = await locks.withLock('job', job, { minHoldMs }).then(
    () => true,
    (error: unknown) => {
      answeredAt = now();
      if (error instanceof LockTimeoutError) return false;
      throw error;
    },
  );
  return { backend, tick, askedAt, answeredAt, ran };
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

serve(api);

export type CronApi = typeof api;
