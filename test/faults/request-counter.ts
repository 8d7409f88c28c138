import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import type { Contract } from '../conformance/contract.js';
import { EtcdServer } from '../servers/etcd-server.js';
import { askRedis } from '../servers/ask-redis.js';
import { ProxiedBackend } from './proxied-backend.js';

/** Services that stand for processes, and how many requests their backend has had from them so far. */
export interface CountedBackend extends AsyncDisposable {
  service(options: LockServiceOptions): Promise<LockService>;
  requests(): Promise<number>;
}

export async function counted(contract: Contract): Promise<CountedBackend> {
  const connection = contract.harness.connection?.();
  if (connection?.backend === 'etcd') return asked(contract, () => etcdRequests(contract));
  if (connection?.backend === 'redlock') return asked(contract, () => scripts(connection.urls.map(portOf)));
  if (connection?.backend === 'redis' && 'cluster' in connection)
    return asked(contract, () => scripts(connection.cluster.map(({ port }) => port)));
  return overheard(contract);
}

/** Each write is one request on its way, however many commands it has. */
async function overheard(contract: Contract): Promise<CountedBackend> {
  const world = await ProxiedBackend.start(contract);
  let writes = 0;
  world.proxy.onRequest(() => (writes += 1));
  return {
    service: (options) => world.proxied('warm-up', options),
    requests: () => Promise.resolve(writes),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

/** Where one proxy would not do, the servers themselves have counted. */
function asked(contract: Contract, requests: () => Promise<number>): CountedBackend {
  return { service: (options) => contract.service(options), requests, [Symbol.asyncDispose]: () => Promise.resolve() };
}

async function etcdRequests({ harness }: Contract): Promise<number> {
  const server = harness.server?.();
  if (!(server instanceof EtcdServer)) throw new Error('only etcd counts its requests by method');
  const { Txn = 0, Range = 0, DeleteRange = 0, Watch = 0 } = await server.requests();
  return Txn + Range + DeleteRange + Watch;
}

async function scripts(ports: readonly number[]): Promise<number> {
  const infos = await Promise.all(ports.map((port) => askRedis(port, 'INFO commandstats')));
  const calls = infos.flatMap((info) => Array.from(info.matchAll(/^cmdstat_eval(?:sha)?:calls=(?<calls>\d+)/gmu)));
  return calls.reduce((sum, { groups }) => sum + Number(groups?.calls), 0);
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
