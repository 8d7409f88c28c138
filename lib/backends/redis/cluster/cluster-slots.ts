import { SLOTS } from '../connection/key-slot.js';
import { asList } from '../scripts/redis-values.js';

/** Which master serves which slot, by `host:port`, as one node of the cluster said it. */
export class SlotMap {
  readonly masters: ReadonlySet<string>;

  private constructor(private readonly addresses: readonly (string | undefined)[]) {
    this.masters = new Set(addresses.filter((address) => address !== undefined));
  }

  /** @param reply of `CLUSTER SLOTS`: https://redis.io/docs/latest/commands/cluster-slots/ */
  static parse(reply: unknown, asked: string): SlotMap {
    const addresses = Array.from<string | undefined>({ length: SLOTS });
    for (const range of asList(reply)) {
      const [first, last, master] = asList(range);
      const [host, port] = asList(master);
      addresses.fill(addressAs(host, port, asked), Number(first), Number(last) + 1);
    }
    return new SlotMap(addresses);
  }

  addressOf(slot: number): string | undefined {
    return this.addresses[slot];
  }

  equals(other: SlotMap): boolean {
    return this.addresses.every((address, slot) => address === other.addresses[slot]);
  }
}

/** As a node gave it that was asked at `asked`: one that does not know its own host leaves it out. */
export function addressAs(host: unknown, port: unknown, asked: string): string {
  const isKnown = typeof host === 'string' && host !== '' && host !== '?';
  return `${isKnown ? host : splitAddress(asked).host}:${String(port)}`;
}

export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
