import type { NodeHealth } from '../../../core/index.js';

/** The trouble of one node in words, for the health of many. */
export function detailsOf({ name, status, detail }: NodeHealth): string[] {
  if (status === 'down') return [`${name} is down: ${detail ?? 'no reason is known'}`];
  return detail === undefined ? [] : [`${name}: ${detail}`];
}
