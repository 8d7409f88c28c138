import { randomUUID } from 'node:crypto';
import { WakeUps } from '../../../core/index.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { slotOf } from '../connection/key-slot.js';
import { Subscription, type Subscriptions } from '../connection/subscription.js';

/** Maximum number of channel names to try. One of them is almost sure to fit a node that owns 0.1 % of the slots. */
const MAX_CHANNEL_NAMES = 20_000;

/**
 * One subscription on each master with a key that this process holds or waits for. Channels are sharded: a message
 * stays on the node of the channel's slot. This node's count of receivers shows whether this process listens. The name
 * of a channel is therefore chosen so that its slot belongs to that master.
 */
export class ClusterSubscriptions implements Subscriptions {
  readonly isSharded = true;
  readonly wakeUps = new WakeUps();
  readonly #subscriptionByAddress = new Map<string, Subscription>();
  readonly #closingSubscriptions = new Set<Promise<void>>();

  constructor(
    private readonly nodes: ClusterNodes,
    private readonly prefix: string,
    private readonly wakesWaiters: boolean,
  ) {
    nodes.onSlotsMoved = () => this.#onSlotsMoved();
  }

  channelFor(leaseKey: string): string | undefined {
    return this.#subscriptionByAddress.get(this.#masterOf(leaseKey) ?? '')?.channelFor();
  }

  openForWaiter(leaseKey: string): void {
    this.#getOrCreateSubscription(leaseKey)?.openForWaiter();
  }

  openForHolder(leaseKey: string): void {
    this.#getOrCreateSubscription(leaseKey)?.openForHolder();
  }

  async close(): Promise<void> {
    for (const [address] of this.#subscriptionByAddress) this.#closeSubscription(address);
    await Promise.all(this.#closingSubscriptions);
  }

  #masterOf(leaseKey: string): string | undefined {
    return this.nodes.slots?.masterOf(this.nodes.slotOf(leaseKey));
  }

  #getOrCreateSubscription(leaseKey: string): Subscription | undefined {
    const address = this.#masterOf(leaseKey);
    return address === undefined
      ? undefined
      : (this.#subscriptionByAddress.get(address) ?? this.#createSubscription(address));
  }

  #createSubscription(address: string): Subscription | undefined {
    const name = this.wakesWaiters ? this.#findChannelName(address) : undefined;
    if (this.wakesWaiters && name === undefined) return undefined;
    const subscription = new Subscription(this.nodes.connectionTo(address), name, this.wakeUps, true);
    this.#subscriptionByAddress.set(address, subscription);
    return subscription;
  }

  #findChannelName(address: string): string | undefined {
    const id = randomUUID();
    for (let i = 0; i < MAX_CHANNEL_NAMES; i += 1) {
      const name = `${this.prefix}:{${i}}:${id}`;
      if (this.nodes.slots?.masterOf(slotOf(name)) === address) return name;
    }
    return undefined;
  }

  /** Wakes all waiters, because their keys may have moved. */
  #onSlotsMoved(): void {
    for (const [address, { channelName: name }] of this.#subscriptionByAddress) {
      const isMaster = this.nodes.slots?.masters.has(address) === true;
      const isStillUsable = name === undefined ? isMaster : this.nodes.slots?.masterOf(slotOf(name)) === address;
      if (!isStillUsable) this.#closeSubscription(address);
    }
    this.wakeUps.wakeAll();
  }

  #closeSubscription(address: string): void {
    const closePromise = this.#subscriptionByAddress.get(address)?.close() ?? Promise.resolve();
    this.#subscriptionByAddress.delete(address);
    const trackedPromise = closePromise.finally(() => this.#closingSubscriptions.delete(trackedPromise));
    this.#closingSubscriptions.add(trackedPromise);
  }
}
