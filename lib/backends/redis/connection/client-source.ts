import { makeClient, OWN_CLIENT_OPTIONS } from './client-factory.js';
import type { ClientSource, RedisClient } from './redis-client.js';

/** Own connections to the server of a URL. */
export function urlSource(url: string): ClientSource {
  const make = (): Promise<RedisClient> => makeClient(url, 'url');
  return { open: make, openSubscriber: make };
}

/** A given client, and an own connection like it for the subscription. */
export function givenSource(client: RedisClient): ClientSource {
  return {
    given: client,
    open: async () => client,
    openSubscriber: async () => client.duplicate(OWN_CLIENT_OPTIONS),
  };
}
