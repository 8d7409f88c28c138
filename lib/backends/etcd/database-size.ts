import { systemClock } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import { MORE_SPACE } from './error.js';
import { METHOD } from './transport/messages.js';

const GIB = 1024 ** 3;
/** For servers before etcd 3.6, which do not tell their quota. */
const USUAL_QUOTA = 2 * GIB;
const ALARMING = 0.8;

const LOOK_EVERY_MS = 60_000;
/** While an operator has something to put right. */
const LOOK_AGAIN_MS = 5_000;

/** Warns in `health` of a server that forgets nothing. A full one refuses every write of everybody. */
export class DatabaseSize {
  #lookedAt = -Infinity;
  #alarming = false;

  constructor(private readonly client: EtcdClient) {}

  /** Asks at most once a minute, and never lets anybody wait. */
  lookNowAndThen(): void {
    if (systemClock.now() - this.#lookedAt >= (this.#alarming ? LOOK_AGAIN_MS : LOOK_EVERY_MS)) void this.look();
  }

  /** Learns nothing when the user has no permission to ask. */
  async look(): Promise<void> {
    this.#lookedAt = systemClock.now();
    try {
      const status = await this.client.call(METHOD.status, Buffer.alloc(0));
      const full = status.texts(8).some((error) => error.includes('NOSPACE'));
      const advice = adviceOn(Number(status.integer(3)), Number(status.integer(12)), full);
      this.#alarming = advice !== undefined;
      this.client.health.advise('size', advice);
    } catch {
      // The next request that needs an answer tells the trouble.
    }
  }
}

/** @param quota 0 when it is unknown */
export function adviceOn(size: number, quota: number, full: boolean): string | undefined {
  const limit = quota > 0 ? quota : USUAL_QUOTA;
  if (!full && size < limit * ALARMING) return undefined;
  const ofQuota = quota > 0 ? ` of ${inGib(quota)} GiB` : ', which is 2 GiB unless it was set';
  const state = full ? 'is full, and refuses every write' : `will refuse every write at its quota${ofQuota}`;
  return `etcd's database has ${inGib(size)} GiB and ${state}: ${MORE_SPACE}`;
}

function inGib(bytes: number): string {
  return (bytes / GIB).toFixed(2);
}
