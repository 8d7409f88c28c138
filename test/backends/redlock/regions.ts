import { LockService, LockBackend } from 'nestjs-distributed-lock/core';
import { RedlockLeaseStore } from '../../../lib/backends/redlock/lease-store.js';
import { RedlockNode } from '../../../lib/backends/redlock/redlock-node.js';
import { ServerIdentities } from '../../../lib/backends/redlock/server-identities.js';
import { createUrlSource } from '../../../lib/backends/redis/connection/client-sources.js';
import { FaultProxy } from '../../support/fault-proxy.js';
import type { RedlockWorld } from './redlock-world.js';

const SETTINGS = {
  prefix: 'redlock',
  // No node is ever silent here. On a busy machine 160 callers make each other wait.
  requestTimeoutMs: 10_000,
  maxSkewMs: 1_000,
  restartQuarantineMs: 0,
};

/**
 * Lock services that are far from some of the nodes. All know the nodes by the same names, as those do who use the same URLs:
 * the first node decides split votes.
 */
export class Regions implements AsyncDisposable {
  readonly #opened: { close(): Promise<unknown> }[] = [];

  constructor(private readonly world: RedlockWorld) {}

  /** A proxy to each node that is `delayMs` away, each way, by its place. */
  async serviceAt(delaysMs: readonly number[]): Promise<{ service: LockService; proxies: readonly FaultProxy[] }> {
    const proxies: FaultProxy[] = [];
    for (const [place, server] of this.world.servers.entries()) {
      const proxy = await FaultProxy.start(server);
      proxy.delay(delaysMs[place] ?? 0);
      proxies.push(proxy);
    }
    const identities = new ServerIdentities('redlock');
    const nodes = proxies.map(
      ({ port }, place) =>
        new RedlockNode(`node ${place}`, createUrlSource(`redis://127.0.0.1:${port}`), SETTINGS, identities),
    );
    const store = new RedlockLeaseStore(nodes, SETTINGS);
    const service = new LockService(new LockBackend(store), { maxHandOffs: 0 });
    this.#opened.push(...proxies, service);
    await service.withLock('warm-up', () => undefined, { waitMs: 30_000 });
    return { service, proxies };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const opened of this.#opened.splice(0).toReversed()) await opened.close();
  }
}
