import { type LockBackend, LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { describeWanted, FaultProxy, type Lease, win as winOn, World } from '../../support/index.js';
import { memcached, type MemcachedOptions } from 'nestjs-distributed-lock/memcached';
import { MemcachedServer, type MemcachedServerOptions } from '../../servers/memcached-server.js';

/** A server of its own, and what a test opens on it. Ends with the test. */
export class MemcachedWorld extends World {
  // `start` makes it.
  server!: MemcachedServer;

  constructor(private readonly options?: MemcachedServerOptions) {
    super();
  }

  async start(): Promise<void> {
    this.server = await MemcachedServer.start(this.options);
  }

  /** Stands for a process. */
  service(options: Partial<MemcachedOptions> = {}, service: LockServiceOptions = {}): LockService {
    return this.closing(new LockService(memcached({ servers: this.server.address, ...options }), service));
  }

  backend(options: Partial<MemcachedOptions> = {}): LockBackend {
    return this.closing(memcached({ servers: this.server.address, ...options })());
  }

  /** A connection that can be disturbed, and the options that lead over it. */
  async proxy(): Promise<{ readonly proxy: FaultProxy; readonly servers: string }> {
    const proxy = this.closing(await FaultProxy.start(this.server));
    return { proxy, servers: `127.0.0.1:${proxy.port}` };
  }

  /** The lease on `key`, as the server has it. */
  async lease(key: string): Promise<{ readonly owner: string; readonly cas: string } | undefined> {
    const found = /^VALUE \S+ 0 \d+ (?<cas>\d+)\r\n(?<owner>[^|\r]*)/.exec(await this.server.ask(`gets lock:l:${key}`));
    return found?.groups && { owner: found.groups['owner'] ?? '', cas: found.groups['cas'] ?? '' };
  }

  stop(): Promise<void> {
    return this.server.stop();
  }
}

/** A lease on a key that must be free, or become so, with nobody who would renew it. */
export function win(backend: LockBackend, key: string, ttlMs = 60_000, waitMs = 10_000): Promise<Lease> {
  return winOn(backend, key, { ttlMs, waitMs });
}

const PROTOCOLS = { 'memcached-meta': 'meta', 'memcached-classic': 'classic' } as const;

/** The same tests with each protocol that `LOCK_BACKENDS` leaves in. */
export function describeProtocols(
  title: string,
  tests: (options: { readonly protocol: 'meta' | 'classic' }, name: keyof typeof PROTOCOLS) => void,
): void {
  describeWanted(['memcached-meta', 'memcached-classic'], title, (name) => tests({ protocol: PROTOCOLS[name] }, name));
}
