import type { Holder } from '../contract/holder.js';
import type { Line } from './line.js';

/** What one reading saw of a key. */
export interface Sight<Place> {
  /** Those who have not ended. */
  readonly line: Line;
  /** The server's time, in milliseconds: not later than it was. */
  readonly now: number;
  /** How much later it may be there, by now. @default 0 */
  readonly aheadMs?: number;
  /** Greater than every token that the key has had. */
  readonly nextToken: bigint;
  /** A lease that stands in no line: whoever meets a free key takes all of it without one. */
  readonly lease?: { readonly owner: string; readonly leftMs: number | null; readonly holder?: Holder };
  /** What a swap compares: it changes with every change of the key. */
  readonly place: Place;
}

export interface Swap {
  readonly line: Line;
  /** Of a new grant, if it is one. The last token of a key stays where a holder asks again. */
  readonly token: bigint | undefined;
  /** Who would get in by asking, for stores that can tell them. */
  readonly ready: readonly string[];
}

/** A value that a store keeps for each key, read and swapped: all that several holders of a key need. */
export interface LineCell<Place> {
  /** @param grants whether a token may be needed */
  read(key: string, grants: boolean): Promise<Sight<Place>>;
  /** False: it was changed meanwhile, and nothing is done. */
  swap(key: string, place: Place, next: Swap): Promise<boolean>;
}
