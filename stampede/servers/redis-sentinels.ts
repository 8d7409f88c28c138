import { join } from 'node:path';
import type { ServerRecipe } from '../../servers/recipe.js';
import { redis, redisWith } from '../../servers/redis.js';
import { type Server, startServer, startServers, combineServers } from './server.js';

const NAME = 'mymaster';
const SETTINGS = 'sentinel.conf';

/** Starts a master, a replica and three Sentinels. The replica takes the place of the master when that is killed. */
export async function startSentinels(): Promise<Server> {
  const master = startServer(redisWith('--repl-diskless-sync-delay', '0'));
  const replica = master.then(({ address }) => startServer(replicaOf(portOf(address))));
  // Sentinels look for replicas at first, and then only every ten seconds.
  const sentinels = replica.then(async () => startServers(sentinelOf(portOf((await master).address)), 3));
  const all = await combineServers([master, replica, sentinels]);
  return { ...all, address: `${(await sentinels).address}/${NAME}`, nodes: [await master] };
}

function portOf(address: string): string {
  return new URL(address).port;
}

function replicaOf(port: string): ServerRecipe {
  return { ...redisWith('--replicaof', '127.0.0.1', port), ready: 'sync: Finished with success' };
}

function sentinelOf(masterPort: string): ServerRecipe {
  return {
    ...redis,
    name: 'Sentinel',
    settings: {
      file: SETTINGS,
      text: (directory, port) =>
        [
          `port ${port}`,
          'bind 127.0.0.1',
          `dir ${directory}`,
          `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
          `sentinel down-after-milliseconds ${NAME} 500`,
          `sentinel failover-timeout ${NAME} 2000`,
        ].join('\n'),
    },
    serve: (directory) => ['redis-server', join(directory, SETTINGS), '--sentinel'],
    // The Sentinel has met another one then, and the two of them can replace a master.
    ready: '+sentinel sentinel',
    address: (port) => `127.0.0.1:${port}`,
  };
}
