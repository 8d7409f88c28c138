import { randomInt } from 'node:crypto';
import { runWithoutContext, isLockError, pause, systemClock, type Timer } from '../../../core/index.js';
import { ClusterHealth } from './cluster-health.js';
import { slotOf } from '../connection/key-slot.js';
import { SlotMap } from './cluster-slots.js';
import type { ClusterSource } from './cluster-source.js';
import { RedisConnection } from '../connection/redis-connection.js';
import { toLoggableError } from '../error.js';

/** Time between two loads of the slots while all nodes are up: a cluster does not announce a failover. */
const SLOTS_REFRESH_MS = 5_000;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 1_000;
const MIN_LOAD_INTERVAL_MS = 200;
const MASTERS_ASKED_AT_ONCE = 3;
const IDLE_CHECK_MS = 100;

/** Connections to the nodes of a cluster, and the map of its slots to their masters. */
export class ClusterNodes {
  readonly health = new ClusterHealth();
  readonly #connections = new Map<string, RedisConnection>();
  /**
   * Retired connections with unfinished requests. Their nodes are former masters, seeds that are no masters, or masters
   * that the asked node does not know yet.
   */
  readonly #retiredConnections = new Set<RedisConnection>();
  /** Called when slots have moved to other nodes. The subscriptions set this callback. */
  onSlotsMoved = (): void => undefined;
  slots: SlotMap | undefined;
  #slotsPromise: Promise<SlotMap> | undefined;
  #applicationRefreshPromise: Promise<unknown> | undefined;
  #nextLoad: Timer | undefined;
  #retryCount = 0;
  #lastLoadAt = -Infinity;
  #isClosed = false;
  #onKeyChange: ((name: string | undefined) => void) | undefined;

  constructor(
    private readonly source: ClusterSource,
    private readonly timeoutMs: number,
  ) {
    this.health.onChange(({ status }) => status === 'down' && this.#scheduleLoad(0));
  }

  get keyPrefix(): string {
    return this.source.keyPrefix;
  }

  readonly slotOf = (leaseKey: string): number => slotOf(this.keyPrefix + leaseKey);

  connectionTo(address: string): RedisConnection {
    if (this.#isClosed) throw new Error('the backend is closed');
    const existingConnection = this.#connections.get(address);
    if (existingConnection) return existingConnection;
    const source = this.source.createClientSource(address);
    const connection = new RedisConnection(source, this.timeoutMs, systemClock, { slotOfKey: this.slotOf });
    if (this.#onKeyChange) connection.trackKeys(this.#onKeyChange);
    this.#connections.set(address, connection);
    return connection;
  }

  trackKeys(onChange: (name: string | undefined) => void): void {
    this.#onKeyChange = onChange;
    for (const connection of this.#connections.values()) connection.trackKeys(onChange);
  }

  get shouldTrackMoreKeys(): boolean {
    return [...this.#connections.values()].some((connection) => connection.shouldTrackMoreKeys);
  }

  /** @throws when no node answers */
  loadSlots(): Promise<SlotMap> {
    this.#slotsPromise ??= runWithoutContext(() => this.#loadFromNodes()).finally(() => {
      this.#slotsPromise = undefined;
      this.#retryCount = this.health.hasFailure ? this.#retryCount + 1 : 0;
      this.#scheduleLoad(
        this.#retryCount > 0 ? Math.min(RETRY_BASE_MS * 2 ** this.#retryCount, MAX_RETRY_MS) : SLOTS_REFRESH_MS,
      );
    });
    return this.#slotsPromise;
  }

  /** Loads the slots in the background. Reports a failure to the health only. */
  refreshSlots(): void {
    this.loadSlots().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#nextLoad?.cancel();
    const connections = [...this.#connections.values(), ...this.#retiredConnections];
    await Promise.all(connections.map((connection) => connection.close()));
  }

  /** Closes the connection as soon as all its requests have ended, each within its time-outs. */
  #retireConnection(connection: RedisConnection): void {
    if (connection.isIdle()) {
      this.#retiredConnections.delete(connection);
      void connection.close();
    } else {
      this.#retiredConnections.add(connection);
      systemClock.schedule(IDLE_CHECK_MS, () => this.#retireConnection(connection), { background: true });
    }
  }

  #scheduleLoad(delayMs: number): void {
    this.#nextLoad?.cancel();
    if (this.#isClosed) return;
    this.#nextLoad = systemClock.schedule(delayMs, () => this.refreshSlots(), { background: true });
  }

  async #loadFromNodes(): Promise<SlotMap> {
    const waitMs = this.#lastLoadAt + MIN_LOAD_INTERVAL_MS - systemClock.now();
    if (waitMs > 0) await pause(systemClock, waitMs, { background: true });
    this.#lastLoadAt = systemClock.now();
    const masters = [...(this.slots?.masters ?? [])];
    try {
      const slots = await this.#loadFromFastest(pickRandom(masters, MASTERS_ASKED_AT_ONCE)).catch(async () =>
        this.#loadFromFastest([...new Set([...(await this.source.loadSeedAddresses()), ...masters])]),
      );
      this.#applySlots(slots);
      return slots;
    } catch (error) {
      const lockError = errorsOf(error).find((cause) => isLockError(cause));
      if (lockError) throw lockError;
      const problem = `no node of the cluster answers: ${joinMessages(error)}`;
      this.health.report(problem);
      this.#refreshApplicationClient();
      throw new Error(problem, { cause: error });
    }
  }

  #refreshApplicationClient(): void {
    const onSettled = (): void => void (this.#applicationRefreshPromise = undefined);
    if (this.#applicationRefreshPromise) return;
    this.#applicationRefreshPromise = this.source.refreshApplicationClient?.().then(onSettled, onSettled);
  }

  #loadFromFastest(addresses: readonly string[]): Promise<SlotMap> {
    const loadFrom = async (address: string): Promise<SlotMap> =>
      SlotMap.parse(await this.connectionTo(address).sendCommand('CLUSTER', 'SLOTS'), address);
    return Promise.any(addresses.map(loadFrom));
  }

  #applySlots(slots: SlotMap): void {
    const previousSlots = this.slots;
    this.slots = slots;
    for (const address of slots.masters) this.health.watchNode(address, this.connectionTo(address).health);
    for (const [address, connection] of this.#connections) {
      if (slots.masters.has(address)) continue;
      this.#connections.delete(address);
      this.health.removeNode(address);
      this.#retireConnection(connection);
    }
    this.health.report(undefined);
    if (!previousSlots || previousSlots.equals(slots)) return;
    this.onSlotsMoved();
    this.health.putHoldsInJeopardy('slots have gone to other nodes');
  }
}

function pickRandom(addresses: readonly string[], maxCount: number): string[] {
  const remainingAddresses = [...addresses];
  const count = Math.min(maxCount, remainingAddresses.length);
  return Array.from({ length: count }, () => remainingAddresses.splice(randomInt(remainingAddresses.length), 1)).flat();
}

function joinMessages(error: unknown): string {
  return [...new Set(errorsOf(error).map((cause) => toLoggableError(cause).message))].join('; ');
}

function errorsOf(error: unknown): readonly unknown[] {
  return error instanceof AggregateError ? error.errors : [error];
}
