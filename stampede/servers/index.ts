import { etcd } from '../../servers/etcd.js';
import { mariadb } from '../../servers/mariadb.js';
import { memcached } from '../../servers/memcached.js';
import { postgres } from '../../servers/postgres.js';
import { redis } from '../../servers/redis.js';
import { startCluster } from './redis-cluster.js';
import { startSentinels } from './redis-sentinels.js';
import { type Server, startServer, startServers } from './server.js';
import { zookeeper } from '../../servers/zookeeper.js';

/** Starts of a server for this stampede, by the variable that tells the shops of it. */
const STARTS: Readonly<Record<string, () => Promise<Server>>> = {
  REDIS_URL: () => startServer(redis),
  REDIS_SENTINELS: startSentinels,
  REDIS_CLUSTER: startCluster,
  REDLOCK_URLS: () => startServers(redis, 5),
  MEMCACHED_SERVERS: () => startServer(memcached),
  ZOOKEEPER_URL: () => startServer(zookeeper),
  ETCD_ENDPOINTS: () => startServer(etcd),
  POSTGRES_URL: () => startServer(postgres),
  MARIADB_URL: () => startServer(mariadb),
};

/**
 * Returns the server that `variable` names. Starts one that ends with the stampede where the variable is not set.
 * @throws Error that says what to install, or to set
 */
export async function startServerFor(variable: string, env: NodeJS.ProcessEnv): Promise<Server> {
  const address = env[variable];
  if (address !== undefined) {
    assertLocal(variable, address);
    return { address, [Symbol.asyncDispose]: async () => undefined };
  }
  const advice = `set ${variable} to a server on this machine`;
  const start = STARTS[variable];
  if (!start) throw new Error(`${advice}: the stampede cannot start one`);
  try {
    return await start();
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}; or ${advice}`, { cause: error });
  }
}

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * @param addresses one URL or `host:port`, or several with commas between them, and perhaps a path in the end
 * @throws Error when one of them is on another machine
 */
function assertLocal(variable: string, addresses: string): void {
  for (const address of addresses.split(',')) {
    const url = address.includes('://') ? address : `tcp://${address}`;
    if (!URL.canParse(url)) throw new Error(`${variable} must be a URL, or host:port`);
    const { hostname } = new URL(url);
    if (LOCAL_HOSTS.has(hostname)) continue;
    throw new Error(
      `a stampede is for this machine only, and ${variable} names ${hostname}: unset it, or use a local server`,
    );
  }
}
