import type { HealthSource, LeaseState, LeaseStore } from '../../core/index.js';
import type { RedisCommand } from './connection/redis-client.js';
import type { RedisServers } from './connection/redis-servers.js';
import { cleanError } from './error.js';
import { scanKeys } from './key-scan.js';
import { RENEW } from './scripts/lease-scripts.js';
import { isOwn, leaseKeyOf, nobody } from './scripts/redis-values.js';
import type { RedisScript } from './scripts/redis-script.js';

/** A lease store for scripts, by which a lease begins with its owner. */
export abstract class RedisLeaseStore implements Omit<LeaseStore, 'tryAcquire'> {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly keepsOrder: boolean = true;

  /** Until it is answered the server says nothing else: https://redis.io/docs/latest/commands/wait/ */
  protected readonly confirmation: RedisCommand | undefined;

  constructor(
    protected readonly servers: RedisServers,
    protected readonly prefix: string,
    minReplicas: number,
  ) {
    if (minReplicas > 0) this.confirmation = ['WAIT', minReplicas, Math.ceil(servers.timeoutMs / 4)];
  }

  get health(): HealthSource {
    return this.servers.health;
  }

  /** The script that acquires. The server learns it at the start. */
  protected abstract readonly acquisition: RedisScript | undefined;

  /** Connects, and lets the server refuse the rights that every lock needs. */
  async start(): Promise<void> {
    await this.servers.prepare();
    try {
      await this.check();
    } catch (error) {
      this.servers.health.report('down', cleanError(error).message);
      throw error;
    }
    if (!this.acquisition) return;
    // Without a key the script does nothing. Some proxies refuse it then.
    const requests = [['EVAL', this.acquisition.source, 0]] as const;
    await this.servers.ask('', { requests, read: () => undefined }).catch(() => undefined);
  }

  abstract release(key: string, owner: string): Promise<boolean>;

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.renewBy(RENEW, [leaseKey], owner, ttlMs);
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.servers.ask(leaseKey, { requests: [['GET', leaseKey]], read: ([lease]) => isOwn(lease, owner) });
  }

  abstract look(key: string): Promise<LeaseState>;

  keys(prefix: string): AsyncGenerator<readonly string[]> {
    return scanKeys(this.servers, this.prefix, prefix);
  }

  close(): Promise<void> {
    return this.servers.close();
  }

  protected check(): Promise<unknown> {
    return this.release(nobody(), nobody());
  }

  /** @param keys of the script, the lease's first */
  protected renewBy(
    script: RedisScript,
    keys: readonly [string, ...string[]],
    owner: string,
    ttlMs: number,
  ): Promise<boolean> {
    return this.servers.ask(keys[0], {
      requests: [{ script, keys, args: [owner, Math.ceil(ttlMs)] }],
      confirmation: this.confirmation,
      read: ([renewed, copies]) => {
        if (Number(renewed) !== 1) return false;
        this.assertConfirmed(copies);
        return true;
      },
    });
  }

  /** @throws when too few replicas have what was written just before, so that the write counts as failed */
  protected assertConfirmed(copies: unknown): void {
    if (!this.confirmation) return;
    const [, minReplicas, timeoutMs] = this.confirmation;
    if (Number(copies) >= Number(minReplicas)) return;
    throw new Error(`only ${Number(copies)} of ${minReplicas} replicas had it within ${timeoutMs} ms`);
  }
}
