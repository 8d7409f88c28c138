import type { Lease } from '../../../lib/core/leasing/lease.js';
import { zookeeper, type ZooKeeperMode } from 'nestjs-distributed-lock/zookeeper';
import { serve } from '../../support/serve.js';
import { contend } from './zookeeper-world.js';

interface Contention {
  readonly connectString: string;
  readonly mode: ZooKeeperMode;
  readonly key: string;
  readonly count: number;
  /** @default 60_000 */
  readonly sessionTtlMs?: number;
}

let granted = 0;
let passesOn = false;
const held: Lease[] = [];

function onGranted(lease: Lease | null): unknown {
  granted += 1;
  return passesOn ? lease?.release() : lease && held.push(lease);
}

const api = {
  /** Each over a connection of its own, as if it were a process. Resolves when all of them wait on the server. */
  contend: async ({ connectString, mode, key, count, sessionTtlMs = 60_000 }: Contention) => {
    const one = (): Promise<void> =>
      new Promise((resolve, reject) => {
        const backend = zookeeper({ connectString, mode, sessionTtlMs })();
        contend(backend, key, { waitMs: 60_000, onBlocked: () => resolve() })
          .then(onGranted)
          .catch(reject);
      });
    await Promise.all(Array.from({ length: count }, one));
  },
  granted: () => granted,
  /** Releases the key, now and whenever a caller gets it from now on. */
  releaseAll: async () => {
    passesOn = true;
    await Promise.all(held.splice(0).map((lease) => lease.release()));
  },
};

export type ContendersApi = typeof api;

serve(api);
