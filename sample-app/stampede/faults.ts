import { setTimeout as pause } from 'node:timers/promises';
import type { Plan } from './arguments.js';
import type { PaymentWatch } from './payment-watch.js';
import type { Progress } from './progress.js';
import type { Shop } from './shop.js';

export interface Faults {
  kills: number;
  freezes: number;
}

/** Sold by others while a process is frozen. They can sell none before its lock has expired. */
const SOLD_MEANWHILE = 3;
/** Should it have been stopped in the middle of a transaction, nobody can sell. */
const FROZEN_AT_MOST_MS = 6_000;

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
