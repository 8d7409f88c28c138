import type { LockBackend } from 'nestjs-distributed-lock/core';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import { serve } from '../../support/serve.js';
import { contend } from './zookeeper-world.js';

let backend: LockBackend;
let served: Promise<number>;

const api = {
  /** Resolves when all contenders of one connection have learnt that they must wait. */
  wait: async ({ connectString, key, contenders }: { connectString: string; key: string; contenders: number }) => {
    backend = zookeeper({ connectString, mode: 'simple' })();
    let waiting = 0;
    let onAll: () => void = () => undefined;
    const all = new Promise<void>((resolve) => (onAll = resolve));
    const onBlocked = (): void => {
      waiting += 1;
      if (waiting === contenders) onAll();
    };
    const one = async (): Promise<void> => {
      const lease = await contend(backend, key, { waitMs: 20_000, onBlocked });
      await lease?.release();
    };
    const waits = Array.from({ length: contenders }, one);
    served = Promise.all(waits).then(({ length }) => length);
    await all;
  },
  served: async () => {
    const count = await served;
    await backend.close();
    return count;
  },
};

export type SharedWatchApi = typeof api;

serve(api);
