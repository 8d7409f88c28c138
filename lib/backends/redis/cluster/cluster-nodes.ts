import { randomInt } from 'node:crypto';
import { detached, isLockError, pause, systemClock, type Timer } from '../../../core/index.js';
import { ClusterHealth } from './cluster-health.js';
import { slotOf } from '../connection/key-slot.js';
import { SlotMap } from './cluster-slots.js';
import type { ClusterSource } from './cluster-source.js';
import { RedisConnection } from '../connection/redis-connection.js';
import { cleanError } from '../error.js';

/** How often the slots are asked for while all is well: nothing announces a failover. */
const REFRESH_MS = 5_000;
/** How often while something is wrong, at first and in the end. */
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;
/** Between two questions, however many callers want an answer. */
const LEAST_INTERVAL_MS = 200;
/** The first node that answers is believed. */
const ASKED_AT_ONCE = 3;

/** A connection to each master of a cluster, and which slots it serves, also after a failover or a resharding. */
export class ClusterNodes {
  readonly health = new ClusterHealth();
  readonly #connections = new Map<string, RedisConnection>();
  /** Called when slots have gone to other masters. */
  onMoved = (): void => undefined;
  /** As far as they are known. */
  slots: SlotMap | undefined;
  #loading: Promise<SlotMap> | undefined;
  #nextLoad: Timer | undefined;
  #retries = 0;
  #loadedAt = -Infinity;
  #closed = false;

  constructor(
    private readonly source: ClusterSource,
    private readonly timeoutMs: number,
  ) {
    this.health.onChange(({ status }) => status === 'down' && this.#loadIn(0));
  }

  get keyPrefix(): string {
    return this.source.keyPrefix;
  }

  readonly slotOf = (leaseKey: string): number => slotOf(this.keyPrefix + leaseKey);

  /** One connection to each address, made when it is first asked for. */
  at(address: string): RedisConnection {
    if (this.#closed) throw new Error('the backend is closed');
    const known = this.#connections.get(address);
    if (known) return known;
    const connection = new RedisConnection(this.source.at(address), this.timeoutMs, systemClock, this.slotOf);
    this.#connections.set(address, connection);
    return connection;
  }

  /** Asks the cluster. Calls that come meanwhile share the answer. Rejects when no node answers. */
  load(): Promise<SlotMap> {
    this.#loading ??= detached(() => this.#load()).finally(() => {
      this.#loading = undefined;
      this.#retries = this.health.troubled ? this.#retries + 1 : 0;
      this.#loadIn(this.#retries > 0 ? Math.min(FIRST_RETRY_MS * 2 ** this.#retries, LONGEST_RETRY_MS) : REFRESH_MS);
    });
    return this.#loading;
  }

  /** The known slots may be out of date. A failure shows in the health. */
  refresh(): void {
    this.load().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#nextLoad?.cancel();
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  #loadIn(delayMs: number): void {
    this.#nextLoad?.cancel();
    if (this.#closed) return;
    this.#nextLoad = systemClock.schedule(delayMs, () => this.refresh(), { background: true });
  }

  /** Asks a few masters, and when none of them answers all known nodes. */
  async #load(): Promise<SlotMap> {
    const waitMs = this.#loadedAt + LEAST_INTERVAL_MS - systemClock.now();
    if (waitMs > 0) await pause(systemClock, waitMs, { background: true });
    this.#loadedAt = systemClock.now();
    const masters = [...(this.slots?.masters ?? [])];
    try {
      const slots = await this.#firstAnswer(some(masters)).catch(async () =>
        this.#firstAnswer([...new Set([...(await this.source.seeds()), ...masters])]),
      );
      this.#settle(slots);
      return slots;
    } catch (error) {
      const misfit = errorsOf(error).find((one) => isLockError(one));
      if (misfit) throw misfit;
      const trouble = `no node of the cluster answers: ${reasonsOf(error)}`;
      this.health.report('down', trouble);
      this.source.lookAgain?.();
      throw new Error(trouble, { cause: error });
    }
  }

  #firstAnswer(addresses: readonly string[]): Promise<SlotMap> {
    return Promise.any(
      addresses.map(async (address) => SlotMap.parse(await this.at(address).send('CLUSTER', 'SLOTS'), address)),
    );
  }

  #settle(slots: SlotMap): void {
    const before = this.slots;
    this.slots = slots;
    this.health.report('up');
    for (const address of slots.masters) this.health.watch(address, this.at(address).health);
    for (const [address, connection] of this.#connections) {
      if (slots.masters.has(address)) continue;
      this.#connections.delete(address);
      this.health.forget(address);
      void connection.close();
    }
    if (!before || before.equals(slots)) return;
    this.onMoved();
    this.health.doubt('slots have gone to other nodes');
  }
}

function some(addresses: readonly string[]): string[] {
  const left = [...addresses];
  const chosen = Math.min(ASKED_AT_ONCE, left.length);
  return Array.from({ length: chosen }, () => left.splice(randomInt(left.length), 1)).flat();
}

function reasonsOf(error: unknown): string {
  return [...new Set(errorsOf(error).map((one) => cleanError(one).message))].join('; ');
}

function errorsOf(error: unknown): readonly unknown[] {
  return error instanceof AggregateError ? error.errors : [error];
}
