import { runWithoutContext } from '../time/without-context.js';
import { setInterval } from '../time/real-timers.js';

/** Maximum delay of a timer of Node. */
const MAX_DELAY_MS = 2 ** 31 - 1;

let keepAliveCount = 0;
let keepAliveTimer: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until `endKeepAlive` is called, because a caller awaits a promise of a lock service. Without
 * a connection, as during a reconnection, Node would otherwise exit with code 0.
 */
export function beginKeepAlive(): void {
  keepAliveCount += 1;
  if (keepAliveCount > 1) return;
  if (keepAliveTimer) keepAliveTimer.ref();
  else keepAliveTimer = runWithoutContext(() => setInterval(() => undefined, MAX_DELAY_MS));
}

/** Undoes one call of `beginKeepAlive`. Once all calls are undone the process may exit, even if it holds locks. */
export function endKeepAlive(): void {
  keepAliveCount -= 1;
  if (keepAliveCount === 0) keepAliveTimer?.unref();
}

export async function withKeepAlive<T>(task: () => Promise<T>): Promise<T> {
  beginKeepAlive();
  try {
    return await task();
  } finally {
    endKeepAlive();
  }
}
