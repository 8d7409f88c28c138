import type { RedisClient } from './redis-client.js';

const EVENTS = ['connecting', 'ready', 'close', 'end'] as const;

type ClientListeners = Readonly<Record<(typeof EVENTS)[number], () => void>>;

interface SharedListeners {
  readonly allListeners: Set<ClientListeners>;
  readonly callbacks: ClientListeners;
}

const sharedListenersByClient = new WeakMap<RedisClient, SharedListeners>();

/**
 * Adds listeners to a client, and returns a function that removes them. All lock services on a client share one
 * listener for each event, because Node warns of a leak at more than ten.
 */
export function addClientListeners(client: RedisClient, listeners: ClientListeners): () => void {
  const { allListeners, callbacks } = sharedListenersOf(client);
  if (allListeners.size === 0) for (const event of EVENTS) client.on(event, callbacks[event]);
  allListeners.add(listeners);
  return () => {
    if (allListeners.delete(listeners) && allListeners.size === 0)
      for (const event of EVENTS) client.off(event, callbacks[event]);
  };
}

function sharedListenersOf(client: RedisClient): SharedListeners {
  const existingListeners = sharedListenersByClient.get(client);
  if (existingListeners) return existingListeners;
  const allListeners = new Set<ClientListeners>();
  const callAll = (event: (typeof EVENTS)[number]) => () => {
    for (const listeners of allListeners) listeners[event]();
  };
  const callbacks = {
    connecting: callAll('connecting'),
    ready: callAll('ready'),
    close: callAll('close'),
    end: callAll('end'),
  };
  const newListeners = { allListeners, callbacks };
  sharedListenersByClient.set(client, newListeners);
  return newListeners;
}
