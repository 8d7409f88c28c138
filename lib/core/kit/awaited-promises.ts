import { setInterval } from 'node:timers';
import { runDetached } from '../time/detached.js';

/** Maximum delay of a timer of Node. The interval has nothing to do when it fires. */
const MAX_DELAY_MS = 2 ** 31 - 1;

let pending = 0;
let keepAliveTimer: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until `endAwaited` is called, because a caller awaits a promise of a lock service. While a
 * connection is being replaced Node would have nothing to wait for, and would exit with code 0.
 */
export function beginAwaited(): void {
  pending += 1;
  if (pending > 1) return;
  if (keepAliveTimer) keepAliveTimer.ref();
  else keepAliveTimer = runDetached(() => setInterval(() => undefined, MAX_DELAY_MS));
}

/** Ends one `beginAwaited`. After the last one the process may exit, even with locks. */
export function endAwaited(): void {
  pending -= 1;
  if (pending === 0) keepAliveTimer?.unref();
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
