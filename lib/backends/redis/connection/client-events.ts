import type { RedisClient } from './redis-client.js';

const EVENTS = ['connecting', 'ready', 'close', 'end'] as const;

type ClientListeners = Readonly<Record<(typeof EVENTS)[number], () => void>>;

interface SharedListeners {
  /** Listeners of all lock services on the client. */
  readonly allListeners: Set<ClientListeners>;
  /** Functions that the client calls, one for each event. Each calls the listeners of all services to its event. */
  readonly sharedCallbacks: ClientListeners;
}

const sharedListenersByClient = new WeakMap<RedisClient, SharedListeners>();

/**
 * Adds listeners to a client, and returns a function that removes them. All lock services on a client share one
 * listener for each event, because Node warns of a leak at more than ten.
 */
export function addClientListeners(client: RedisClient, listeners: ClientListeners): () => void {
  const { allListeners, sharedCallbacks } = sharedListenersOf(client);
  if (allListeners.size === 0) for (const event of EVENTS) client.on(event, sharedCallbacks[event]);
  allListeners.add(listeners);
  return () => {
    if (allListeners.delete(listeners) && allListeners.size === 0)
      for (const event of EVENTS) client.off(event, sharedCallbacks[event]);
  };
}

function sharedListenersOf(client: RedisClient): SharedListeners {
  const existingListeners = sharedListenersByClient.get(client);
  if (existingListeners) return existingListeners;
  const allListeners = new Set<ClientListeners>();
  const callAll = (event: (typeof EVENTS)[number]) => () => {
    for (const listeners of allListeners) listeners[event]();
  };
  const sharedCallbacks = {
    connecting: callAll('connecting'),
    ready: callAll('ready'),
    close: callAll('close'),
    end: callAll('end'),
  };
  const newListeners = { allListeners, sharedCallbacks };
  sharedListenersByClient.set(client, newListeners);
  return newListeners;
}
