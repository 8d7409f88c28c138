import { setInterval } from 'node:timers';
import { runDetached } from '../time/detached.js';

/** Maximum delay of a timer of Node. */
const MAX_DELAY_MS = 2 ** 31 - 1;

let awaitedCount = 0;
let keepAliveTimer: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until `endKeepAlive` is called, because a caller awaits a promise of a lock service. Without
 * a connection, as during a reconnection, Node would otherwise exit with code 0.
 */
export function beginKeepAlive(): void {
  awaitedCount += 1;
  if (awaitedCount > 1) return;
  if (keepAliveTimer) keepAliveTimer.ref();
  else keepAliveTimer = runDetached(() => setInterval(() => undefined, MAX_DELAY_MS));
}

/** Ends one `beginKeepAlive`. After the last one the process may exit, even if it holds locks. */
export function endKeepAlive(): void {
  awaitedCount -= 1;
  if (awaitedCount === 0) keepAliveTimer?.unref();
}

/** Keeps the process alive until the promise of `task` is settled. */
export async function withKeepAlive<T>(task: () => Promise<T>): Promise<T> {
  beginKeepAlive();
  try {
    return await task();
  } finally {
    endKeepAlive();
  }
}
