import {
  createLoginSource,
  createSecretLoginSource,
  type RedisHostOptions,
  type RedisLoginOptions,
} from '../access-options.js';
import { readRedisUrl } from '../redis-url.js';
import { makeOwnClient, OWN_CLIENT_OPTIONS, tlsOptions, withDatabaseCheck } from './own-client.js';
import type { ClientSource, RedisClient } from './redis-client.js';

/** Returns a source of connections to the server of a URL. */
export function createUrlSource(url: string, { credentials, tls }: RedisLoginOptions = {}): ClientSource {
  const { isTls, username, password, ...location } = readRedisUrl('url', url);
  const login = createLoginSource('credentials', credentials, { username, password });
  return { makeClient: () => makeOwnClient({ ...location, tls: tlsOptions(tls ?? isTls) }, login, 'url') };
}

/** Returns a source of connections to a server that is described by host and port. */
export function createHostSource({ host, port, db, tls, ...secrets }: RedisHostOptions): ClientSource {
  const address = { host, ...(port === undefined ? {} : { port }), ...(db === undefined ? {} : { db }) };
  const login = createSecretLoginSource(secrets);
  return { makeClient: () => makeOwnClient({ ...address, tls: tlsOptions(tls) }, login, 'host') };
}

/** Returns a source that uses a given client, and duplicates it for the subscription. */
export function createGivenClientSource(client: RedisClient): ClientSource {
  return {
    givenClient: client,
    makeClient: async () => client,
    makeSubscriber: async () => withDatabaseCheck(client.duplicate(OWN_CLIENT_OPTIONS)),
  };
}
