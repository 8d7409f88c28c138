import type { RedisClient } from './redis-client.js';

const EVENTS = ['connecting', 'ready', 'close', 'end'] as const;

type ClientListeners = Readonly<Record<(typeof EVENTS)[number], () => void>>;

/** The listeners of all lock services on one client, and the functions that the client calls for them. */
interface SharedListeners {
  readonly allListeners: Set<ClientListeners>;
  readonly callbacks: ClientListeners;
}

const sharedListeners = new WeakMap<RedisClient, SharedListeners>();

/**
 * Calls `listeners` at the events of `client` until the returned function is called. All lock services on a client share
 * one listener for each event, because Node warns of a leak after ten.
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
  const existing = sharedListeners.get(client);
  if (existing) return existing;
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
  const shared = { allListeners, callbacks };
  sharedListeners.set(client, shared);
  return shared;
}
