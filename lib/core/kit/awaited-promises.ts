import { setInterval } from 'node:timers';
import { detached } from '../time/detached.js';

/** The longest delay of a timer of Node. The interval has nothing to do when it fires. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

let pending = 0;
let reference: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until `endAwaited` is called. A caller awaits a promise of a lock service: without this Node
 * would find nothing to wait for while a connection is being replaced, and would exit with code 0 before the answer.
 */
export function beginAwaited(): void {
  pending += 1;
  if (pending > 1) return;
  if (reference) reference.ref();
  else reference = detached(() => setInterval(() => undefined, LONGEST_DELAY_MS));
}

/** Ends one `beginAwaited`. After the last one the process may exit, whatever it holds. */
export function endAwaited(): void {
  pending -= 1;
  if (pending === 0) reference?.unref();
}

/** Keeps the process alive until the promise that `ask` returns is settled. */
export async function whileAwaited<T>(ask: () => Promise<T>): Promise<T> {
  beginAwaited();
  try {
    return await ask();
  } finally {
    endAwaited();
  }
}
