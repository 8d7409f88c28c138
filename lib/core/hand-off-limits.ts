import type { Lease } from './lock-backend.js';
import type { LockServiceOptions } from './lock-options.js';

/** How often, and for how long, the callers of one process may pass a lease on among themselves. */
export interface HandOffLimits {
  readonly times: number;
  readonly ms: number;
}

export type HandOffOptions = Pick<LockServiceOptions, 'maxHandOffs' | 'maxHandOffMs'>;

/** Bits of a fencing token that count hand-offs, so that callers of one lease have growing tokens too. */
export const HAND_OFF_BITS = 10n;
/** With nobody else in line one more question now and then costs nothing, and lets the event loop go round. */
export const MAX_HAND_OFFS = 1_023;
const MAX_HAND_OFF_MS = 100;

/**
 * A turn has to be long, so that few of its callers are those who waited for it, and a round of the processes short, since
 * one of them waits for all the others' turns.
 */
const MAX_HAND_OFF_MS_IN_LINE = 20;
/**
 * So many fill most of such a turn where there is nothing to do inside. Their number ends it then, so that a slow process gets
 * as many as a fast one.
 */
const MAX_HAND_OFFS_IN_LINE = 3_071;
/**
 * How far apart the tokens of a store with a line are: more than room for all hand-offs of such a turn. Must never shrink, for
 * tokens would, too, where they are this number times one of the server's.
 */
export const TOKEN_STEP = 8;

export function handOffLimits(
  { maxHandOffs, maxHandOffMs }: HandOffOptions,
  { queued = false, tokenStep = 1 }: Lease,
): HandOffLimits {
  const room = tokenStep * (MAX_HAND_OFFS + 1) - 1;
  const times = queued ? Math.min(MAX_HAND_OFFS_IN_LINE, room) : MAX_HAND_OFFS;
  const ms = queued ? MAX_HAND_OFF_MS_IN_LINE : MAX_HAND_OFF_MS;
  return { times: maxHandOffs ?? times, ms: maxHandOffMs ?? ms };
}
