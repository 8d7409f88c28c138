import { setTimeout as pause } from 'node:timers/promises';
import { LOCK_BACKENDS } from './shop-process/lock-backends.js';
import type { Plan } from './arguments.js';
import type { PaymentWatch } from './payment-watch.js';
import type { Progress } from './progress.js';
import type { Server } from './servers/server.js';
import type { Shop } from './shop.js';

export interface Faults {
  kills: number;
  freezes: number;
}

/** Number of pieces that others sell while a process is frozen. They can sell none before its lock has expired. */
const SOLD_MEANWHILE = 3;
/** Longest freeze. A process that froze in the middle of a transaction lets nobody else sell. */
const MAX_FREEZE_MS = 6_000;

/** Returns the servers that the plan kills. @throws Error when the stampede started fewer */
export function findDoomedNodes({ backend, killNodes }: Plan, server: Server | undefined): readonly Server[] {
  const doomed = server?.nodes?.slice(0, killNodes) ?? [];
  if (doomed.length === killNodes) return doomed;
  throw new Error(`--kill-nodes kills servers that the stampede started: unset ${LOCK_BACKENDS[backend].variable}`);
}

/** Kills the servers once a fifth is sold. Resolves to their number. */
export async function killServers(doomed: readonly Server[], stock: number, progress: Progress): Promise<number> {
  if (!(await progress.waitForSales(Math.ceil(stock / 5)))) return 0;
  await Promise.all(doomed.map((node) => node[Symbol.asyncDispose]()));
  return doomed.length;
}

/** Kills and freezes a process that has the lock, and has read the stock and not written it yet. */
export async function inflictFaults(plan: Plan, watch: PaymentWatch, progress: Progress): Promise<Faults> {
  const faults: Faults = { kills: 0, freezes: 0 };
  const nextVictim = (afterShare: number): Promise<Shop | undefined> =>
    watch.nextAfter(Math.floor(plan.stock * afterShare), progress.endSignal);

  const killed = plan.kill ? await nextVictim(0.3) : undefined;
  if (killed) {
    await killed.kill();
    faults.kills += 1;
  }
  const frozen = plan.freeze ? await nextVictim(0.5) : undefined;
  if (frozen) {
    frozen.freeze();
    faults.freezes += 1;
    const maxFreeze = pause(MAX_FREEZE_MS, undefined, { ref: false });
    await Promise.race([progress.waitForSales(progress.sold + SOLD_MEANWHILE), maxFreeze]);
    frozen.thaw();
  }
  return faults;
}
