import type { HealthSource, LeaseState, LeaseStore, StoreTraits } from '../../core/index.js';
import type { RedisCommand } from './connection/redis-client.js';
import type { RedisServers } from './connection/redis-servers.js';
import { cleanError } from './error.js';
import { scanKeys } from './key-scan.js';
import { namedError } from './missing-commands.js';
import { RENEW } from './scripts/lease-scripts.js';
import { isOwn, leaseKeyOf } from './scripts/redis-values.js';
import type { RedisScript } from './scripts/redis-script.js';

/** The key that is taken at the start frees itself after this time, whatever happens. */
export const CHECK_TTL_MS = 5_000;

/** A lease store for scripts, by which a lease begins with its owner. */
export abstract class RedisLeaseStore implements Omit<LeaseStore, 'tryAcquire'> {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly traits: StoreTraits = { keepsOrder: true };

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

  /** Commands that the scripts of this mode call. */
  protected abstract readonly commands: readonly string[];

  /** Connects, and takes a lock that nobody uses: the server refuses what it cannot do, and learns the scripts. */
  async start(): Promise<void> {
    await this.servers.prepare();
    try {
      await this.check();
    } catch (cause) {
      const error = await namedError(cause, this.servers, this.prefix, this.commands);
      this.servers.health.report('down', cleanError(error).message);
      throw error;
    }
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

  /** Sends each command once that a lock needs. Leaves nothing on the server. */
  protected abstract check(): Promise<unknown>;

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
