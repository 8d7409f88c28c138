import type { Holder } from '../contract/holder.js';
import type { Line } from './line.js';

/** Result of one reading of a key. */
export interface CellReading<Place> {
  /** Claims that have not ended. */
  readonly line: Line;
  /** Time of the server in milliseconds, at the reading or shortly before it. */
  readonly now: number;
  /** Milliseconds by which the server's time may be later by now. @default 0 */
  readonly aheadMs?: number;
  /** Token that is greater than every token which the key has had. */
  readonly nextToken: bigint;
  /** Lease outside of the line: an owner that finds the key free takes all of it without a line. */
  readonly lease?: { readonly owner: string; readonly leftMs: number | null; readonly holder?: Holder };
  /** Version that a swap compares. It changes with every change of the key. */
  readonly place: Place;
}

/** New value of a key. */
export interface CellUpdate {
  readonly line: Line;
  /** Token of a new grant. `undefined`: the key keeps its last token. */
  readonly token: bigint | undefined;
  /** Waiters that would get in by asking, for stores that can wake them. */
  readonly ready: readonly string[];
}

/** Value that a store keeps for each key, to be read and swapped: all that several holders of a key need. */
export interface LineCell<Place> {
  /** Reads the value of a key. @param grants whether a new token may be needed */
  read(key: string, grants: boolean): Promise<CellReading<Place>>;
  /** Swaps the value, and resolves to whether it did: another process may have changed it since the reading. */
  swap(key: string, place: Place, next: CellUpdate): Promise<boolean>;
}
