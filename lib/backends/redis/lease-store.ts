import type { Asker, HealthSource, HolderMetadata, LeaseAttempt, LeaseStore } from '../../core/index.js';
import type { RedisServers } from './connection/redis-servers.js';
import type { ReplicaCheck } from './connection/replica-check.js';
import { RENEW } from './scripts/lease-scripts.js';
import { isOwn, leaseKeyOf, nobody } from './scripts/lease-value.js';
import type { RedisScript } from './scripts/redis-script.js';

/** A lease store for scripts, by which a lease begins with its owner. */
export abstract class RedisLeaseStore implements LeaseStore {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly keepsOrder: boolean = true;

  constructor(
    protected readonly servers: RedisServers,
    protected readonly replicas: ReplicaCheck,
    protected readonly prefix: string,
  ) {}

  get health(): HealthSource {
    return this.servers.health;
  }

  /** The script that acquires. The server learns it at the start. */
  protected abstract readonly acquisition: RedisScript | undefined;

  /** Connects, and lets the server refuse the rights that every lock needs. */
  start(): Promise<void> {
    return this.servers.start(async () => {
      await this.check();
      if (this.acquisition) await this.#teach(this.acquisition);
    });
  }

  abstract tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt>;

  abstract release(key: string, owner: string): Promise<boolean>;

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.servers.ask(leaseKey, {
      requests: this.replicas.after(RENEW.call([leaseKey], [owner, Math.ceil(ttlMs)])),
      read: ([renewed, copies]) => {
        if (Number(renewed) !== 1) return false;
        this.replicas.assert(copies);
        return true;
      },
    });
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.servers.ask(leaseKey, { requests: [['GET', leaseKey]], read: ([lease]) => isOwn(lease, owner) });
  }

  close(): Promise<void> {
    return this.servers.close();
  }

  protected check(): Promise<unknown> {
    return this.release(nobody(), nobody());
  }

  /** Without a key the script does nothing. Some proxies refuse it then. */
  async #teach({ source }: RedisScript): Promise<void> {
    const question = { requests: [['EVAL', source, 0]] as const, read: () => undefined };
    await this.servers.ask('', question).catch(() => undefined);
  }
}
