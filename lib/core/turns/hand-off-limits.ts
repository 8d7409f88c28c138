import { type HandOffOptions, MAX_HAND_OFFS } from '../options/hand-off-options.js';

const MAX_HAND_OFF_MS = 100;

/** Shorter than `MAX_HAND_OFF_MS`, because other processes wait in the server's queue. */
const MAX_QUEUED_HAND_OFF_MS = 20;

export function areHandOffsExhausted(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { wasQueued = false }: { readonly wasQueued?: boolean },
  count: number,
  heldMs: number,
): boolean {
  const maxMs = maxHandOffMs ?? (wasQueued ? MAX_QUEUED_HAND_OFF_MS : MAX_HAND_OFF_MS);
  return count >= maxHandOffs || heldMs >= maxMs;
}
