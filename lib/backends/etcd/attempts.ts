import { type Caller, NotSentError } from '../../core/index.js';
import { toConnectionError } from './error.js';
import { StaleConnectionError } from './transport/grpc-connection.js';
import type { OnSend } from './transport/request-line.js';

/**
 * Runs `task`, and repeats it once if its connection turns out to be stale. Rejects with a `NotSentError` only if no
 * request of the caller was sent.
 */
export async function attemptForCaller<T>(
  caller: Caller | undefined,
  task: (onSend: OnSend) => Promise<T>,
): Promise<T> {
  let wasSent = false;
  const onSend = (): boolean => {
    if (caller?.onSend() === false) return false;
    wasSent = true;
    return true;
  };
  try {
    return await retryOnStaleConnection(() => task(onSend));
  } catch (error) {
    throw wasSent && error instanceof NotSentError ? toConnectionError(error) : error;
  }
}

/**
 * Repeats `task` once if its connection turns out to be stale, which shows only when it is used. The server may have
 * carried out the first try, so a repetition of `task` must be harmless.
 */
export async function retryOnStaleConnection<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error;
    return task();
  }
}
