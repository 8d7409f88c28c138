import { type HandOffOptions, MAX_HAND_OFFS } from '../options/hand-off-options.js';

const MAX_HAND_OFF_MS = 100;

/** Default of `maxHandOffMs` for a lease whose first caller waited in the server's queue, as other processes do. */
const MAX_QUEUED_HAND_OFF_MS = 20;

/**
 * Returns whether no further caller of this process may take over or join a lease.
 * @param count number of earlier hand-offs or joins of the lease
 */
export function areHandOffsExhausted(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { wasQueued = false }: { readonly wasQueued?: boolean },
  count: number,
  heldMs: number,
): boolean {
  const maxMs = maxHandOffMs ?? (wasQueued ? MAX_QUEUED_HAND_OFF_MS : MAX_HAND_OFF_MS);
  return count >= maxHandOffs || heldMs >= maxMs;
}
