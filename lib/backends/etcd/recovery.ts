import { retryUntilAnswered } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';

/** Polls etcd while it is down, so that `health` shows its return. Returns a function that ends the polling. */
export function pollWhileDown(client: EtcdClient, readableKey: string): () => void {
  let isPolling = false;
  let isStopped = false;
  const shouldPoll = (): boolean => !isStopped && client.health.current.status === 'down';
  // `health` decides, because an answer on a connection that the client no longer uses does not count.
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
