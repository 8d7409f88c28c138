import { randomUUID } from 'node:crypto';
import { EtcdClient } from '../../lib/backends/etcd/transport/client.js';
import { resolveEtcdOptions } from '../../lib/backends/etcd/options.js';
import { type Contestant, retryUntilGranted } from '../contestants/contestant.js';

/** Floor of etcd: one transaction and one deletion. It uses the library's own client, the cheapest that is known. */
export const ETCD_FLOOR: Contestant = {
  name: 'floor: txn + delete',
  renewsLease: false,
  connect: async (to, terms) => {
    if (to.backend !== 'etcd') throw new Error(`${to.backend} is not etcd`);
    const client = new EtcdClient(resolveEtcdOptions({ endpoints: [...to.endpoints] }));
    return {
      withLock: async (name, work) => {
        const key = `floor/${name}`;
        const value = randomUUID();
        const take = { when: [{ key, createRevision: 0n }], steps: [{ put: key, value, lease: 0n }] };
        await retryUntilGranted(async () => (await client.transact(take)).succeeded, terms);
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
