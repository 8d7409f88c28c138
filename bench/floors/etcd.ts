import { randomUUID } from 'node:crypto';
import { EtcdClient } from '../../lib/backends/etcd/transport/client.js';
import { resolveEtcdOptions } from '../../lib/backends/etcd/options.js';
import { type Contestant, retried } from '../contestants/contestant.js';

/** One transaction and one deletion, on our own connection: no other client that we know costs less. */
export const ETCD_FLOOR: Contestant = {
  name: 'floor: txn + delete',
  renews: false,
  connect: async (to, terms) => {
    if (to.backend !== 'etcd') throw new Error(`${to.backend} is not etcd`);
    const client = new EtcdClient(resolveEtcdOptions({ endpoints: [...to.endpoints] }));
    return {
      withLock: async (name, work) => {
        const key = `floor/${name}`;
        const value = randomUUID();
        const take = { when: [{ key, createdAt: 0n }], steps: [{ put: key, value, lease: 0n }] };
        await retried(async () => (await client.transact(take)).succeeded, terms);
        try {
          await work();
        } finally {
          await client.transact({ steps: [{ remove: key }] });
        }
      },
      close: () => client.close(),
    };
  },
};
