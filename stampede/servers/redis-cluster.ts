import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { redisWith } from '../../servers/redis.js';
import { type Server, startServers } from './server.js';

const FLAGS = {
  '--cluster-enabled': 'yes',
  '--cluster-node-timeout': '2000',
  '--repl-diskless-sync-delay': '0',
  // A new node takes no writes for two seconds. It answers reads before: by them the code below finds the node of the key.
  '--cluster-allow-reads-when-down': 'yes',
};
const NODE = { ...redisWith(...Object.entries(FLAGS).flat()), address: (port: number) => `127.0.0.1:${port}` };
/** Name of the sale's lock on the server. */
const SALE_LOCK = 'lock:{lock_sale_42}';

/** Starts three masters with a replica each. The master that has the sale's lock can be killed. */
export async function startCluster(): Promise<Server> {
  const cluster = await startServers(NODE, 6);
  try {
    const { nodes = [] } = cluster;
    const addresses = nodes.map(({ address }) => address);
    await redisCli('--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes');
    const answers = await Promise.all(
      addresses.map((address) => redisCli('-u', `redis://${address}`, 'GET', SALE_LOCK)),
    );
    return { ...cluster, nodes: nodes.filter((_, i) => answers[i]?.startsWith('MOVED') !== true) };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

async function redisCli(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('redis-cli', args);
  return stdout;
}
