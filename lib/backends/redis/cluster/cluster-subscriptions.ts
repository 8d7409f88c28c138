import { randomUUID } from 'node:crypto';
import { WakeUps } from '../../../core/index.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { slotOf } from '../connection/key-slot.js';
import { Subscription, type Subscriptions } from '../connection/subscription.js';

/** Maximum number of channel names to try. Finds a node that owns 0.1 % of the slots almost surely. */
const MAX_CHANNEL_NAMES = 20_000;

/**
 * One subscription on each master that has a key with a waiter, or one that is held. Their channels are sharded: a message
 * stays on its node, and the node's count of receivers tells whether this process listens. The name of a channel lies in a
 * slot of its node.
 */
export class ClusterSubscriptions implements Subscriptions {
  readonly isSharded = true;
  readonly wakeUps = new WakeUps();
  readonly #subscriptionByNode = new Map<string, Subscription>();
  readonly #closing = new Set<Promise<void>>();

  constructor(
    private readonly nodes: ClusterNodes,
    private readonly prefix: string,
    /** Whether waiters are woken; else the subscriptions only tell of keys that have changed. */
    private readonly wakesWaiters: boolean,
  ) {
    nodes.onSlotsMoved = () => this.#onSlotsMoved();
  }

  channelFor(leaseKey: string): string | undefined {
    return this.#subscriptionByNode.get(this.#nodeOf(leaseKey) ?? '')?.channelFor();
  }

  openForWaiter(leaseKey: string): void {
    this.#subscriptionFor(leaseKey)?.openForWaiter();
  }

  openForHolder(leaseKey: string): void {
    this.#subscriptionFor(leaseKey)?.openForHolder();
  }

  async close(): Promise<void> {
    for (const [node] of this.#subscriptionByNode) this.#closeSubscription(node);
    await Promise.all(this.#closing);
  }

  #nodeOf(leaseKey: string): string | undefined {
    return this.nodes.slots?.masterOf(this.nodes.slotOf(leaseKey));
  }

  #subscriptionFor(leaseKey: string): Subscription | undefined {
    const node = this.#nodeOf(leaseKey);
    return node === undefined ? undefined : (this.#subscriptionByNode.get(node) ?? this.#createSubscription(node));
  }

  /** Returns `undefined` when no name in a slot of the node was found. */
  #createSubscription(node: string): Subscription | undefined {
    const name = this.wakesWaiters ? this.#findChannelName(node) : undefined;
    if (this.wakesWaiters && name === undefined) return undefined;
    const subscription = new Subscription(this.nodes.connectionTo(node), name, this.wakeUps, true);
    this.#subscriptionByNode.set(node, subscription);
    return subscription;
  }

  #findChannelName(node: string): string | undefined {
    const id = randomUUID();
    for (let i = 0; i < MAX_CHANNEL_NAMES; i += 1) {
      const name = `${this.prefix}:{${i}}:${id}`;
      if (this.nodes.slots?.masterOf(slotOf(name)) === node) return name;
    }
    return undefined;
  }

  /** Closes the subscriptions to channels whose slots have moved, which their servers drop. Wakes all waiters: their keys may have moved. */
  #onSlotsMoved(): void {
    for (const [node, { name }] of this.#subscriptionByNode) {
      const isMaster = this.nodes.slots?.masters.has(node) === true;
      const hasChannel = name === undefined ? isMaster : this.nodes.slots?.masterOf(slotOf(name)) === node;
      if (!hasChannel) this.#closeSubscription(node);
    }
    this.wakeUps.wakeAll();
  }

  #closeSubscription(node: string): void {
    const closing = this.#subscriptionByNode.get(node)?.close() ?? Promise.resolve();
    this.#subscriptionByNode.delete(node);
    const closed = closing.finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
