import { retryUntilAnswered } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';

/** Polls etcd while it is down, so that `health` shows its return. Returns a function that ends the polling. */
export function pollWhileDown(client: EtcdClient, readableKey: string): () => void {
  let isPolling = false;
  let isStopped = false;
  const shouldPoll = (): boolean => !isStopped && client.health.current.status === 'down';
  // Asks `health`, because an answer may come from a member that the client no longer uses.
  const isDoneAfterReading = async (): Promise<boolean> => {
    await client.read([readableKey]).catch(() => undefined);
    return !shouldPoll();
  };
  const startPolling = async (): Promise<void> => {
    if (isPolling) return;
    isPolling = true;
    while (shouldPoll()) await retryUntilAnswered(isDoneAfterReading, shouldPoll);
    isPolling = false;
  };
  const stopListening = client.health.onChange(() => void startPolling());
  return () => {
    isStopped = true;
    stopListening();
  };
}
