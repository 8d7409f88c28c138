import { type HandOffOptions, MAX_HAND_OFFS } from '../options/hand-off-options.js';

const MAX_HAND_OFF_MS = 100;

/**
 * Maximum time of hand-offs for a lease that waited in the server's queue. More time serves more callers for each wait
 * in the queue, and less time shortens the wait of other processes.
 */
const MAX_QUEUED_HAND_OFF_MS = 20;

/** Returns whether a lease has reached the maximum number or the maximum time of its hand-offs. */
export function areHandOffsExhausted(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { wasQueued = false }: { readonly wasQueued?: boolean },
  count: number,
  heldMs: number,
): boolean {
  const maxMs = maxHandOffMs ?? (wasQueued ? MAX_QUEUED_HAND_OFF_MS : MAX_HAND_OFF_MS);
  return count >= maxHandOffs || heldMs >= maxMs;
}
