import { retryUntilAnswered } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';

/** Polls so that `health` shows the return of etcd. Returns a function that ends the polling. */
export function pollWhileDown(client: EtcdClient, readableKey: string): () => void {
  let isPolling = false;
  let isStopped = false;
  const shouldPoll = (): boolean => !isStopped && client.health.current.status === 'down';
  // `health` decides, because an answer on a connection that was left meanwhile does not count.
  const readOnce = async (): Promise<boolean> => {
    await client.read([readableKey]).catch(() => undefined);
    return !shouldPoll();
  };
  const startPolling = async (): Promise<void> => {
    if (isPolling) return;
    isPolling = true;
    while (shouldPoll()) await retryUntilAnswered(readOnce, shouldPoll);
    isPolling = false;
  };
  const stopListening = client.health.onChange(() => void startPolling());
  return () => {
    isStopped = true;
    stopListening();
  };
}
