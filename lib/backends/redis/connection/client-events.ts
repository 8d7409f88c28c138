import type { RedisClient } from './redis-client.js';

const EVENTS = ['connecting', 'ready', 'close', 'end'] as const;

type ClientListeners = Readonly<Record<(typeof EVENTS)[number], () => void>>;

/** The listeners of one client, and the functions that the client itself calls. */
interface SharedListeners {
  readonly members: Set<ClientListeners>;
  readonly callbacks: ClientListeners;
}

const sharedListeners = new WeakMap<RedisClient, SharedListeners>();

/**
 * Calls `listeners` at the events of `client` until the returned function is called. Node warns of a leak after ten
 * listeners of one event, and any number of lock services may share a client. Together they add one listener.
 */
export function addClientListeners(client: RedisClient, listeners: ClientListeners): () => void {
  const { members, callbacks } = sharedListenersOf(client);
  if (members.size === 0) for (const event of EVENTS) client.on(event, callbacks[event]);
  members.add(listeners);
  return () => {
    if (members.delete(listeners) && members.size === 0)
      for (const event of EVENTS) client.off(event, callbacks[event]);
  };
}

function sharedListenersOf(client: RedisClient): SharedListeners {
  const existing = sharedListeners.get(client);
  if (existing) return existing;
  const members = new Set<ClientListeners>();
  const callAll = (event: (typeof EVENTS)[number]) => () => {
    for (const listeners of members) listeners[event]();
  };
  const callbacks = {
    connecting: callAll('connecting'),
    ready: callAll('ready'),
    close: callAll('close'),
    end: callAll('end'),
  };
  const shared = { members, callbacks };
  sharedListeners.set(client, shared);
  return shared;
}
