/** What somebody does to a key, or what happens to it. Leases last for so many units of time. */
export type Step =
  | { readonly does: 'ask'; readonly owner: string; readonly lasts: number; readonly waits: boolean }
  | { readonly does: 'renew'; readonly owner: string; readonly lasts: number }
  | { readonly does: 'release'; readonly owner: string }
  /** Its process is dead, and the time of its lease, or of its place in line, is over. */
  | { readonly does: 'die'; readonly owner: string }
  /** It waits, and has not asked for so long that others may pass it over. */
  | { readonly does: 'silence'; readonly owner: string }
  /** So many units of all leases. Those who wait have asked meanwhile. */
  | { readonly does: 'pass'; readonly units: number }
  /** An operator takes the key from all who have it. */
  | { readonly does: 'revoke' };

/** One who has the key, or would have it by asking. */
export interface Holding {
  readonly owner: string;
  /** Units of time. Absent: it has not asked since it was let in. */
  readonly left?: number;
  readonly token?: bigint;
}

/** What a placement shows after a step. */
export interface Sight {
  /** What the step was answered, if it was a question. */
  readonly answer?: boolean;
  readonly holdings: readonly Holding[];
  readonly wasTold: (owner: string) => boolean;
}

/** A step, and what must come of it. */
export interface Moment {
  readonly step: Step;
  readonly answer: boolean | undefined;
  readonly holdings: readonly Holding[];
  /** Somebody's lease has ended, and not all who wait have asked since: a placement may let them in later. */
  readonly isOpen: boolean;
}

export interface Schedule {
  readonly seed: number;
  /** Of more than one limit: a placement may let in fewer. */
  readonly isMixed: boolean;
  /** Some are silent for a while: a placement may let in others meanwhile. */
  readonly hasSilence: boolean;
  readonly moments: readonly Moment[];
}
