import { retryUntilAnswered } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';

/**
 * Polls in the background while etcd is down, so that `health` shows its return. Returns a function that stops it.
 * @param readableKey key that this user may read
 */
export function pollWhileDown(client: EtcdClient, readableKey: string): () => void {
  let isPolling = false;
  let isStopped = false;
  const isNeeded = (): boolean => !isStopped && client.health.current.status === 'down';
  // An answer on a connection that was left meanwhile does not count.
  const readOnce = async (): Promise<boolean> => {
    await client.read([readableKey]).catch(() => undefined);
    return !isNeeded();
  };
  const startPolling = async (): Promise<void> => {
    if (isPolling) return;
    isPolling = true;
    while (isNeeded()) await retryUntilAnswered(readOnce, isNeeded);
    isPolling = false;
  };
  const stopListening = client.health.onChange(() => void startPolling());
  return () => {
    isStopped = true;
    stopListening();
  };
}
