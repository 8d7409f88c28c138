import type { RedisClient } from './redis-client.js';

const EVENTS = ['connecting', 'ready', 'close', 'end'] as const;

type ClientListeners = Readonly<Record<(typeof EVENTS)[number], () => void>>;

interface Crowd {
  readonly members: Set<ClientListeners>;
  readonly shared: ClientListeners;
}

const crowds = new WeakMap<RedisClient, Crowd>();

/**
 * Calls `listeners` at the events of `client` until the returned function is called. Node takes more than ten listeners
 * of one event for a leak, and any number of lock services may share a client: together they add one.
 */
export function listenTo(client: RedisClient, listeners: ClientListeners): () => void {
  const { members, shared } = crowdOf(client);
  if (members.size === 0) for (const event of EVENTS) client.on(event, shared[event]);
  members.add(listeners);
  return () => {
    if (members.delete(listeners) && members.size === 0) for (const event of EVENTS) client.off(event, shared[event]);
  };
}

function crowdOf(client: RedisClient): Crowd {
  const known = crowds.get(client);
  if (known) return known;
  const members = new Set<ClientListeners>();
  const tell = (event: (typeof EVENTS)[number]) => () => {
    for (const listeners of members) listeners[event]();
  };
  const shared = { connecting: tell('connecting'), ready: tell('ready'), close: tell('close'), end: tell('end') };
  const crowd = { members, shared };
  crowds.set(client, crowd);
  return crowd;
}
