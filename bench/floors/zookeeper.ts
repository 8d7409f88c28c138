import { type EventEmitter, once } from 'node:events';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { type Contestant, retryUntilGranted } from '../contestants/contestant.js';

type Done<T> = (error: Error | null, result: T) => void;

/** Methods of node-zookeeper-client that the floor calls. The types of lib/backends/zookeeper have fewer. */
interface Client extends EventEmitter {
  connect(): void;
  close(): void;
  create(path: string, mode: number, done: Done<string>): void;
  getChildren(path: string, done: Done<string[]>): void;
  remove(path: string, done: Done<void>): void;
  mkdirp(path: string, done: Done<string>): void;
}

interface ZooKeeper {
  readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number };
  createClient(connectString: string, options: { sessionTimeout: number }): Client;
}

const zookeeper = createRequire(import.meta.url)('node-zookeeper-client') as ZooKeeper;
const { EPHEMERAL_SEQUENTIAL } = zookeeper.CreateMode;

/**
 * Floor of ZooKeeper: creates an ephemeral sequential node, lists its siblings, and deletes it, with the bare client.
 */
export const ZOOKEEPER_FLOOR: Contestant = {
  name: 'floor: create + list + delete',
  renewsLease: true,
  connect: async (to, terms) => {
    if (to.backend !== 'zookeeper') throw new Error(`${to.backend} is not ZooKeeper`);
    const client = zookeeper.createClient(to.connectString, { sessionTimeout: terms.ttlMs });
    const connected = once(client, 'connected');
    client.connect();
    await connected;
    const create = promisify<string, number, string>((path, mode, done) => client.create(path, mode, done));
    const list = promisify<string, string[]>((path, done) => client.getChildren(path, done));
    const remove = promisify<string, void>((path, done) => client.remove(path, done));
    const parentCreations = new Map<string, Promise<unknown>>();
    const createParent = async (key: string): Promise<string> => {
      const path = `/floor/${key}`;
      if (!parentCreations.has(path))
        parentCreations.set(path, promisify<string, string>((wanted, done) => client.mkdirp(wanted, done))(path));
      await parentCreations.get(path);
      return path;
    };
    return {
      withLock: async (key, work) => {
        const parent = await createParent(key);
        let node = '';
        await retryUntilGranted(async () => {
          node = await create(`${parent}/lock-`, EPHEMERAL_SEQUENTIAL);
          const [first] = (await list(parent)).toSorted();
          if (node.endsWith(`/${first}`)) return true;
          await remove(node);
          return false;
        }, terms);
        try {
          await work();
        } finally {
          await remove(node);
        }
      },
      close: () => client.close(),
    };
  },
};
