import { retryUntilAnswered } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';

/**
 * Asks in the background while etcd is away, so that `health` shows its return. Returns a function that stops it.
 * @param question a key that may be read
 */
export function recover(client: EtcdClient, question: string): () => void {
  let isAsking = false;
  let isOver = false;
  const isWanted = (): boolean => !isOver && client.health.current.status === 'down';
  // An answer on a connection that was left meanwhile does not count.
  const ask = async (): Promise<boolean> => {
    await client.read([question]).catch(() => undefined);
    return !isWanted();
  };
  const askWhileDown = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    while (isWanted()) await retryUntilAnswered(ask, isWanted);
    isAsking = false;
  };
  const forgetHealth = client.health.onChange(() => void askWhileDown());
  return () => {
    isOver = true;
    forgetHealth();
  };
}
