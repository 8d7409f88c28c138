import { type LockBackend, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import type { Lease } from '../../../lib/core/leasing/lease.js';
import { zookeeper, type ZooKeeperOptions } from 'nestjs-distributed-lock/zookeeper';
import { encodeNamePart } from '../../../lib/backends/zookeeper/znode-name.js';
import { sortBySequence } from '../../../lib/backends/zookeeper/queue-order.js';
import { ZookeeperOperator } from '../../servers/zookeeper-operator.js';
import { ZookeeperServer, type ZookeeperServerOptions } from '../../servers/zookeeper-server.js';
import { contend as contendOn, type ContendOptions } from '../../support/contend.js';
import { FaultProxy } from '../../support/fault-proxy.js';
import { World } from '../../support/world.js';

type Options = Partial<ZooKeeperOptions>;

/** One server for the tests of a file, and what each test opens on it. */
export class ZookeeperWorld extends World {
  // `start` makes these.
  server!: ZookeeperServer;
  operator!: ZookeeperOperator;
  #keys = 0;

  constructor(
    private readonly defaults: Options = {},
    private readonly options?: ZookeeperServerOptions,
  ) {
    super();
  }

  async start(): Promise<void> {
    this.server = await ZookeeperServer.start(this.options);
    this.operator = new ZookeeperOperator(this.server.address);
  }

  /** A key that no other test has. */
  key(): string {
    this.#keys += 1;
    return `key-${this.#keys}`;
  }

  backend(options: Options = {}): LockBackend {
    return this.closing(zookeeper({ connectString: this.server.address, ...this.defaults, ...options })());
  }

  service(options: Options = {}, serviceOptions?: LockServiceOptions): LockService {
    return this.closing(new LockService(this.backend(options), serviceOptions));
  }

  /** A service behind a proxy of its own, connected. */
  async proxied(options: Options = {}, serviceOptions?: LockServiceOptions) {
    const proxy = await FaultProxy.start(this.server);
    this.closing({ close: () => proxy.close() });
    const service = this.service({ connectString: `127.0.0.1:${proxy.port}`, ...options }, serviceOptions);
    this.closing({ close: async () => proxy.resume() });
    await service.withLock(this.key(), () => undefined);
    return { proxy, service };
  }

  /** The names of the nodes of those who have the key or wait for it, in their order. */
  async queue(key: string): Promise<readonly string[]> {
    return sortBySequence(await this.operator.children(`/locks/${encodeNamePart(key)}`));
  }

  /** The node of the present holder. */
  async holderPath(key: string): Promise<string> {
    const [first] = await this.queue(key);
    if (first === undefined) throw new Error(`nobody has ${key}`);
    return `/locks/${encodeNamePart(key)}/${first}`;
  }

  async stop(): Promise<void> {
    await this.endTest();
    await this.operator.close();
    await this.server.stop();
  }
}

/** One contender, below the queue of a `LockService`. `onBlocked` is told of holders, as then the contender is in line. */
export function contend(
  backend: LockBackend,
  key: string,
  { onBlocked, ...rest }: ContendOptions = {},
): Promise<Lease | null> {
  const metadata = { host: 'somewhere', pid: 1 };
  return contendOn(backend, key, { metadata, onBlocked: (by) => by instanceof Error || onBlocked?.(by), ...rest });
}

/** `contend` where the key must be free, or become free. */
export async function win(...args: Parameters<typeof contend>): Promise<Lease> {
  const lease = await contend(...args);
  if (!lease) throw new Error(`${args[1]} should have been free`);
  return lease;
}
