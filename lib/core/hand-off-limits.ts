import { type LockServiceOptions, MAX_HAND_OFFS } from './lock-options.js';

/** How often, and for how long, the callers of one process may pass a lease on among themselves. */
export interface HandOffLimits {
  readonly times: number;
  readonly ms: number;
}

export type HandOffOptions = Pick<LockServiceOptions, 'maxHandOffs' | 'maxHandOffMs'>;

const MAX_HAND_OFF_MS = 100;

/** While others stand in line: with more rounds the callers of one turn wait so briefly that those of the others stand out. */
const ROUNDS_IN_LINE = 2;
const MAX_HAND_OFF_MS_IN_LINE = 30;

/** @param callers of this process who want the lease, the one who got it among them */
export function handOffLimits(
  { maxHandOffs, maxHandOffMs }: HandOffOptions,
  { queued, callers }: { readonly queued: boolean; readonly callers: number },
): HandOffLimits {
  const times = queued ? Math.min(ROUNDS_IN_LINE * callers - 1, MAX_HAND_OFFS) : MAX_HAND_OFFS;
  const ms = queued ? MAX_HAND_OFF_MS_IN_LINE : MAX_HAND_OFF_MS;
  return { times: maxHandOffs ?? times, ms: maxHandOffMs ?? ms };
}
