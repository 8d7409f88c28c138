import { setTimeout as pause } from 'node:timers/promises';
import { LOCK_BACKENDS } from '../sample-app/lock-backends.js';
import type { Plan } from './arguments.js';
import type { PaymentWatch } from './payment-watch.js';
import type { Progress } from './progress.js';
import type { Server } from './servers/server.js';
import type { Shop } from './shop.js';

export interface Faults {
  kills: number;
  freezes: number;
}

/** Sold by others while a process is frozen. They can sell none before its lock has expired. */
const SOLD_MEANWHILE = 3;
/** Should it have been stopped in the middle of a transaction, nobody can sell. */
const FROZEN_AT_MOST_MS = 6_000;

/** The servers that the plan kills. @throws Error when there are not so many that the stampede started */
export function doomedNodes({ backend, killNodes }: Plan, server: Server | undefined): readonly Server[] {
  const doomed = server?.nodes?.slice(0, killNodes) ?? [];
  if (doomed.length === killNodes) return doomed;
  throw new Error(`--kill-nodes kills servers that the stampede started: unset ${LOCK_BACKENDS[backend].variable}`);
}

/** Kills servers that have the locks once a fifth is sold. Resolves to how many. */
export async function killServers(doomed: readonly Server[], stock: number, progress: Progress): Promise<number> {
  if (!(await progress.reached(Math.ceil(stock / 5)))) return 0;
  await Promise.all(doomed.map((node) => node[Symbol.asyncDispose]()));
  return doomed.length;
}

/** Kills and freezes at the worst moment: with the lock, the stock read and not written yet. */
export async function inflictFaults(plan: Plan, watch: PaymentWatch, progress: Progress): Promise<Faults> {
  const faults: Faults = { kills: 0, freezes: 0 };
  const victim = (afterShare: number): Promise<Shop | undefined> =>
    watch.nextAfter(Math.floor(plan.stock * afterShare), progress.over);

  const killed = plan.kill ? await victim(0.3) : undefined;
  if (killed) {
    await killed.kill();
    faults.kills += 1;
  }
  const frozen = plan.freeze ? await victim(0.5) : undefined;
  if (frozen) {
    frozen.freeze();
    faults.freezes += 1;
    const enough = pause(FROZEN_AT_MOST_MS, undefined, { ref: false });
    await Promise.race([progress.reached(progress.sold + SOLD_MEANWHILE), enough]);
    frozen.thaw();
  }
  watch.end();
  return faults;
}
