import { makeClient, OWN_CLIENT_OPTIONS } from './client-factory.js';
import type { ClientSource, RedisClient } from './redis-client.js';

/** Connections of our own to the server of a URL. */
export function urlSource(url: string): ClientSource {
  const make = (): Promise<RedisClient> => makeClient(url, 'url');
  return { open: make, openSubscriber: make };
}

/** A client that was given, and a connection of our own like it for the subscription. */
export function givenSource(client: RedisClient): ClientSource {
  return {
    given: client,
    open: async () => client,
    openSubscriber: async () => client.duplicate(OWN_CLIENT_OPTIONS),
  };
}

export function sourceOf({ url = '', client }: { readonly url?: string; readonly client?: RedisClient }): ClientSource {
  return client ? givenSource(client) : urlSource(url);
}
