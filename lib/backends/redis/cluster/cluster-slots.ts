import { SLOT_COUNT } from '../connection/key-slot.js';
import { asList } from '../scripts/redis-values.js';

/** Map of the slots of a cluster to their masters. Each master is an address `host:port`. */
export class SlotMap {
  readonly masters: ReadonlySet<string>;

  private constructor(private readonly masterBySlot: readonly (string | undefined)[]) {
    this.masters = new Set(masterBySlot.filter((address) => address !== undefined));
  }

  /** @param reply reply of `CLUSTER SLOTS`: https://redis.io/docs/latest/commands/cluster-slots/ */
  static parse(reply: unknown, replierAddress: string): SlotMap {
    const masterBySlot = Array.from<string | undefined>({ length: SLOT_COUNT });
    for (const range of asList(reply)) {
      const [firstSlot, lastSlot, master] = asList(range);
      const [host, port] = asList(master);
      masterBySlot.fill(resolveAddress(host, port, replierAddress), Number(firstSlot), Number(lastSlot) + 1);
    }
    return new SlotMap(masterBySlot);
  }

  masterOf(slot: number): string | undefined {
    return this.masterBySlot[slot];
  }

  equals(other: SlotMap): boolean {
    return this.masterBySlot.every((address, slot) => address === other.masterBySlot[slot]);
  }
}

/** Returns `host:port`. Replaces a missing host by that of `replierAddress`: a node may not know its own host. */
export function resolveAddress(host: unknown, port: unknown, replierAddress: string): string {
  const isKnown = typeof host === 'string' && host !== '' && host !== '?';
  return `${isKnown ? host : splitAddress(replierAddress).host}:${String(port)}`;
}

export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
