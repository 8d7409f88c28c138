/** Starts a server of each kind, runs a command that finds them in its environment, and ends as that does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { EtcdServer } from '../servers/etcd-server.js';
import { MemcachedServer } from '../servers/memcached-server.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { RedisServer } from '../servers/redis-server.js';
import { ZookeeperServer } from '../servers/zookeeper-server.js';

const [redis, postgres, zookeeper, memcached, etcd] = await Promise.all([
  RedisServer.start(),
  PostgresServer.start(),
  ZookeeperServer.start(),
  MemcachedServer.start(),
  EtcdServer.start(),
]);
const directory = await mkdtemp(join(tmpdir(), 'e2e-'));
try {
  const [command = '', ...args] = argv.slice(2);
  const addresses = {
    REDIS_URL: redis.url,
    POSTGRES_URL: postgres.url,
    ZOOKEEPER_ADDRESS: zookeeper.address,
    MEMCACHED_ADDRESS: memcached.address,
    ETCD_URLS: etcd.urls.join(','),
    SQLITE_FILE: join(directory, 'locks.sqlite'),
  };
  const child = spawn(command, args, { stdio: 'inherit', env: { ...env, ...addresses } });
  const [code] = await once(child, 'exit');
  process.exitCode = typeof code === 'number' ? code : 1;
} finally {
  await Promise.all([redis, postgres, zookeeper, memcached, etcd].map((server) => server.stop()));
  await rm(directory, { recursive: true });
}
