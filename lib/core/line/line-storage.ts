import type { Holder } from '../contract/holder.js';
import type { Line } from './line.js';

/** The value that a store keeps for a key (see `LineStorage`), as it was read. */
export interface StoredLine<Version> {
  /** Claims to the key, which may include expired ones. */
  readonly line: Line;
  /** Time of the server in milliseconds, at the reading or shortly before it. */
  readonly now: number;
  /** Maximum milliseconds by which the server's time may be ahead of `now`. @default 0 */
  readonly uncertaintyMs?: number;
  /** Token for the next grant, greater than all earlier tokens of the key. */
  readonly nextToken: bigint;
  /** Whether one swap may grant several tokens: `nextToken` and the tokens after it. @default false */
  readonly allowsSeveralTokens?: boolean;
  /** Plain lease of an exclusive owner that found the key free. The lease is not in `line`. */
  readonly lease?: { readonly owner: string; readonly leftMs: number | null; readonly holder?: Holder };
  /** Claims that wait for `lease`, in a store that keeps these outside of `line`. */
  readonly waiters?: Line;
  /** Version of the value, which `swap` compares. Every change of the value changes the version. */
  readonly version: Version;
}

/** New value for a key. */
export interface LineUpdate {
  readonly line: Line;
  /** Token of a new grant. `undefined`: the key keeps its last token. */
  readonly token: bigint | undefined;
  /** Owners of waiting claims that now fit, for stores that can wake them. */
  readonly ready: readonly string[];
}

/**
 * Access to the one value that a store keeps for each key. A store that implements this can have several holders of a
 * key: `ClaimLeases` does the rest.
 */
export interface LineStorage<Version> {
  /** Reads the value of a key. @param mayNeedToken whether a new token may be needed */
  read(key: string, mayNeedToken: boolean): Promise<StoredLine<Version>>;
  /** Writes `next` if the value still has this version. Resolves to whether `next` was written. */
  swap(key: string, version: Version, next: LineUpdate): Promise<boolean>;
}
