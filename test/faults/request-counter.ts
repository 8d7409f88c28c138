import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { connectBackend, type Contract, withoutTracking } from '../support/index.js';
import { ProxiedBackend } from './proxied-backend.js';

/** Services that stand for processes, and how many requests their backend has had from them so far. */
export interface CountedBackend extends AsyncDisposable {
  service(options: LockServiceOptions): Promise<LockService>;
  requests(): Promise<number>;
}

export async function counted(contract: Contract): Promise<CountedBackend> {
  const { requests } = contract.harness;
  if (!requests) return overheard(contract);
  return {
    service: (options) => startService(contract, options),
    requests,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function startService(contract: Contract, options: LockServiceOptions): Promise<LockService> {
  const { harness } = contract;
  const connection = harness.connection?.();
  const backend = connection ? await connectBackend(withoutTracking(connection)) : await harness.connect();
  const service = contract.closing(new LockService(backend, options));
  await service.start();
  return service;
}

/** Each write is one request on its way, however many commands it has. */
async function overheard(contract: Contract): Promise<CountedBackend> {
  const world = await ProxiedBackend.start(contract, withoutTracking);
  let writes = 0;
  world.proxy.onRequest(() => (writes += 1));
  return {
    service: (options) => world.proxied(undefined, options),
    requests: () => Promise.resolve(writes),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}
