import { randomUUID } from 'node:crypto';
import { WakeUps } from '../../../core/index.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { slotOf } from '../connection/key-slot.js';
import { WakeUpChannel, type WakeUpChannels } from '../queue/wake-up-channel.js';

/** Enough to meet the slots of a node that has one of a thousand. */
const MOST_NAMES_TRIED = 20_000;

/**
 * A channel on each master whose keys somebody waits for. Channels are sharded: a message stays on its node, and the
 * node's count of receivers tells whether this process listens. Each name lies in a slot of its node.
 */
export class ClusterWakeUpChannels implements WakeUpChannels {
  readonly sharded = true;
  readonly wakeUps = new WakeUps();
  readonly #byNode = new Map<string, WakeUpChannel>();
  readonly #closing = new Set<Promise<void>>();

  constructor(
    private readonly nodes: ClusterNodes,
    private readonly prefix: string,
  ) {
    nodes.onMoved = () => this.#onMoved();
  }

  addressOf(leaseKey: string): string | undefined {
    return this.#byNode.get(this.#nodeOf(leaseKey) ?? '')?.addressOf();
  }

  open(leaseKey: string): void {
    const node = this.#nodeOf(leaseKey);
    if (node === undefined) return;
    const name = this.#byNode.get(node)?.name ?? this.#nameOn(node);
    if (name === undefined) return;
    const channel = this.#byNode.get(node) ?? new WakeUpChannel(this.nodes.at(node), name, this.wakeUps, true);
    this.#byNode.set(node, channel);
    channel.open();
  }

  async close(): Promise<void> {
    for (const [node] of this.#byNode) this.#leave(node);
    await Promise.all(this.#closing);
  }

  #nodeOf(leaseKey: string): string | undefined {
    return this.nodes.slots?.addressOf(this.nodes.slotOf(leaseKey));
  }

  #nameOn(node: string): string | undefined {
    const id = randomUUID();
    for (let i = 0; i < MOST_NAMES_TRIED; i += 1) {
      const name = `${this.prefix}:{${i}}:${id}`;
      if (this.nodes.slots?.addressOf(slotOf(name)) === node) return name;
    }
    return undefined;
  }

  /** A channel is dropped by the server when its slot goes. All waiters may wait for another node now. */
  #onMoved(): void {
    for (const [node, { name }] of this.#byNode)
      if (this.nodes.slots?.addressOf(slotOf(name)) !== node) this.#leave(node);
    this.wakeUps.wakeAll();
  }

  #leave(node: string): void {
    const closing = this.#byNode.get(node)?.close() ?? Promise.resolve();
    this.#byNode.delete(node);
    const over = closing.finally(() => this.#closing.delete(over));
    this.#closing.add(over);
  }
}
