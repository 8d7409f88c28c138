import { type LineCell, packLine, type Sight, type Swap, systemClock, unpackLine } from '../../core/index.js';
import type { Present } from './dialect.js';
import { itemNames } from './item-names.js';
import { keyHolderIn } from './lease-value.js';
import type { MemcachedRing } from './ring.js';
import type { VerifiedConnection } from './verified-connection.js';

/** An item, or that there is none, as one connection saw it: cas ids are good on that one only. */
interface Place {
  readonly connection: VerifiedConnection;
  readonly present: Present | null;
}

/** Begins an item whose holders are a line of claims. No owner begins so, and every other request finds it held. */
const LINE_MARK = '|';

export function isLine(value: string): boolean {
  return value.startsWith(LINE_MARK);
}

/** The line of claims to a key, in the item where an exclusive lease would be. */
export class ClaimCell implements LineCell<Place> {
  constructor(
    private readonly servers: MemcachedRing,
    private readonly prefix: string,
  ) {}

  read(key: string, grants: boolean): Promise<Sight<Place>> {
    const names = itemNames(this.prefix, key);
    return this.servers.nodeOf(key).run(async (connection) => {
      const { dialect, clock } = connection;
      const firstToken = clock.microseconds(systemClock.now());
      const [present, nextToken] = await Promise.all([
        dialect.look(names.lease),
        grants ? dialect.count(names, firstToken) : 0n,
      ]);
      // The server's clock is read as early as it may be, so that nothing in the line is over too soon.
      const { nowMs: now, aheadMs } = clock.bounds(systemClock.now());
      const value = present?.value ?? '';
      const sight = { now, aheadMs, nextToken, place: { connection, present } };
      if (value === '' || isLine(value)) return { ...sight, line: unpackLine(value.slice(LINE_MARK.length)) };
      const { owner, leftMs = null, ...holder } = keyHolderIn(value, clock.microseconds(systemClock.now()));
      const { host, pid } = holder;
      const known = host === undefined || pid === undefined ? {} : { holder: { ...holder, host, pid } };
      return { ...sight, line: [], lease: { owner, leftMs, ...known } };
    });
  }

  swap(key: string, { connection: reader, present }: Place, { line }: Swap): Promise<boolean> {
    const names = itemNames(this.prefix, key);
    return this.servers.nodeOf(key).run(async (connection) => {
      const { dialect, clock } = connection;
      if (connection !== reader) return false;
      if (line.length === 0) return present === null || dialect.remove(names.lease, present.cas);
      const value = LINE_MARK + packLine(line);
      const { nowMs } = clock.bounds(systemClock.now());
      const leftMs = Math.max(...line.map(({ until }) => until)) - nowMs;
      const expiresAt = clock.expiryAfter(leftMs, systemClock.now());
      if (present === null) return (await dialect.add(names.lease, value, expiresAt)).added;
      return (await dialect.renew({ names, value, expiresAt }, present.cas))?.value === value;
    });
  }
}
