import {
  type LineStorage,
  packLine,
  type StoredLine,
  type LineUpdate,
  systemClock,
  unpackLine,
} from '../../core/index.js';
import type { StoredItem } from './dialect.js';
import { itemNames } from './item-names.js';
import { readHolderAndLeftMs } from './lease-value.js';
import type { MemcachedServers } from './servers.js';
import type { VerifiedConnection } from './verified-connection.js';

/** Version of an item, or its absence, as one connection read it: a cas unique is valid on that connection only. */
interface ItemVersion {
  readonly connection: VerifiedConnection;
  readonly item: StoredItem | null;
}

/** Start of a value that is a line of claims. No owner begins with this text, so `isLeaseOf` is false for a line. */
const LINE_PREFIX = '|';
const EMPTY_LINE = LINE_PREFIX + packLine([]);

export function isClaimLine(value: string): boolean {
  return value.startsWith(LINE_PREFIX);
}

/** Storage of lines of claims. A line is the value of the item that has a plain lease otherwise. */
export class ClaimLineStorage implements LineStorage<ItemVersion> {
  constructor(
    private readonly servers: MemcachedServers,
    private readonly prefix: string,
  ) {}

  read(key: string, mayNeedToken: boolean): Promise<StoredLine<ItemVersion>> {
    const names = itemNames(this.prefix, key);
    return this.servers.getNode(key).run(async (connection) => {
      const { dialect, clock } = connection;
      const firstToken = clock.microsecondsAt(systemClock.now());
      const [item, nextToken] = await Promise.all([
        dialect.getItem(names.lease),
        mayNeedToken ? dialect.incrementCounter(names, firstToken) : 0n,
      ]);
      // Takes the lower bound of the server's time, so that no claim ends too early.
      const { lowerBoundMs: now, uncertaintyMs } = clock.boundsAt(systemClock.now());
      const value = item?.value ?? '';
      const commonFields = { now, uncertaintyMs, nextToken, version: { connection, item } };
      if (value === '' || isClaimLine(value))
        return { ...commonFields, line: unpackLine(value.slice(LINE_PREFIX.length)) };
      const { owner, leftMs = null, ...holder } = readHolderAndLeftMs(value, clock.microsecondsAt(systemClock.now()));
      const { host, pid } = holder;
      const holderField = host === undefined || pid === undefined ? {} : { holder: { ...holder, host, pid } };
      return { ...commonFields, line: [], lease: { owner, leftMs, ...holderField } };
    });
  }

  swap(key: string, { connection: readingConnection, item }: ItemVersion, update: LineUpdate): Promise<boolean> {
    const { line, token } = update;
    const names = itemNames(this.prefix, key);
    return this.servers.getNode(key).run(async (connection) => {
      const { dialect, clock } = connection;
      if (connection !== readingConnection) return false;
      if (line.length === 0) return item === null || dialect.deleteItem(names.lease, item.cas);
      const value = LINE_PREFIX + packLine(line);
      const { lowerBoundMs } = clock.boundsAt(systemClock.now());
      const maxLeftMs = Math.max(...line.map(({ until }) => until)) - lowerBoundMs;
      const exptime = clock.exptimeAfter(maxLeftMs, systemClock.now());
      if (item === null) {
        // Without an item, no cas unique shows whether the key was granted and released since the reading. The token
        // may then be too small. An attempt with a token therefore only adds an empty line. The next reading gets the
        // cas unique of that line.
        const firstValue = token === undefined ? value : EMPTY_LINE;
        const { item: addedItem } = await dialect.addItem(names.lease, firstValue, exptime);
        return token === undefined && addedItem?.value === value;
      }
      // Compares the stored value, because the reply to the write itself does not show which request it answers.
      return (await dialect.replaceAndGetItem({ names, value, exptime }, item.cas))?.value === value;
    });
  }
}
