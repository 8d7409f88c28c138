import { randomUUID } from 'node:crypto';
import { WakeUps } from '../../../core/index.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { slotOf } from '../connection/key-slot.js';
import { WakeUpChannel, type WakeUpChannels } from '../queue/wake-up-channel.js';

/** Maximum number of channel names to try. Finds a node that owns 0.1 % of the slots almost surely. */
const MAX_CHANNEL_NAMES = 20_000;

/**
 * One channel on each master that has a key with a waiter. Channels are sharded: a message stays on its node, and the
 * node's count of receivers tells whether this process listens. The name of a channel lies in a slot of its node.
 */
export class ClusterWakeUpChannels implements WakeUpChannels {
  readonly isSharded = true;
  readonly wakeUps = new WakeUps();
  readonly #channelByNode = new Map<string, WakeUpChannel>();
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
    return this.#channelByNode.get(this.#nodeOf(leaseKey) ?? '')?.channelFor();
  }

  open(leaseKey: string): void {
    const node = this.#nodeOf(leaseKey);
    if (node === undefined) return;
    const channel = this.#channelByNode.get(node) ?? this.#createChannel(node);
    channel?.open();
  }

  track(leaseKey: string): void {
    const node = this.#nodeOf(leaseKey);
    if (node !== undefined) (this.#channelByNode.get(node) ?? this.#createChannel(node))?.track();
  }

  async close(): Promise<void> {
    for (const [node] of this.#channelByNode) this.#closeChannel(node);
    await Promise.all(this.#closing);
  }

  #nodeOf(leaseKey: string): string | undefined {
    return this.nodes.slots?.masterOf(this.nodes.slotOf(leaseKey));
  }

  /** Returns `undefined` when no name in a slot of the node was found. */
  #createChannel(node: string): WakeUpChannel | undefined {
    const name = this.wakesWaiters ? this.#findChannelName(node) : undefined;
    if (this.wakesWaiters && name === undefined) return undefined;
    const channel = new WakeUpChannel(this.nodes.connectionTo(node), name, this.wakeUps, true);
    this.#channelByNode.set(node, channel);
    return channel;
  }

  #findChannelName(node: string): string | undefined {
    const id = randomUUID();
    for (let i = 0; i < MAX_CHANNEL_NAMES; i += 1) {
      const name = `${this.prefix}:{${i}}:${id}`;
      if (this.nodes.slots?.masterOf(slotOf(name)) === node) return name;
    }
    return undefined;
  }

  /** Closes the channels whose slots have moved, which their servers drop. Wakes all waiters: their keys may have moved. */
  #onSlotsMoved(): void {
    for (const [node, { name }] of this.#channelByNode) {
      const isMaster = this.nodes.slots?.masters.has(node) === true;
      const hasChannel = name === undefined ? isMaster : this.nodes.slots?.masterOf(slotOf(name)) === node;
      if (!hasChannel) this.#closeChannel(node);
    }
    this.wakeUps.wakeAll();
  }

  #closeChannel(node: string): void {
    const closing = this.#channelByNode.get(node)?.close() ?? Promise.resolve();
    this.#channelByNode.delete(node);
    const closed = closing.finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
