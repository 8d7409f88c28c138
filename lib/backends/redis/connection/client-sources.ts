import {
  createLoginSource,
  createLoginSourceFromSecrets,
  type RedisHostOptions,
  type RedisLoginOptions,
} from '../access-options.js';
import { tlsOptions } from '../clients/client-settings.js';
import { adaptNodeRedis } from '../clients/given-node-redis.js';
import { createDuplicateOptions, withConnectionCheck } from '../clients/ioredis.js';
import { isNodeRedisClient, type NodeRedisClient } from '../clients/node-redis-types.js';
import { type RedisClientPackage, loadClientMaker } from '../clients/own-client.js';
import { readRedisUrl } from '../redis-url.js';
import type { ClientSource, RedisClient } from './redis-client.js';

export function createUrlSource(
  url: string,
  { credentials, tls }: RedisLoginOptions = {},
  clientPackage?: RedisClientPackage,
): ClientSource {
  const { isTls, username, password, ...address } = readRedisUrl('url', url);
  const login = createLoginSource('credentials', credentials, { username, password });
  const location = { ...address, tls: tlsOptions(tls ?? isTls) };
  return { makeClient: async () => (await loadClientMaker(clientPackage, 'url')).makeClient(location, login) };
}

export function createHostSource(
  { host, port, db, tls, ...secrets }: RedisHostOptions,
  clientPackage?: RedisClientPackage,
): ClientSource {
  const address = { host, ...(port === undefined ? {} : { port }), ...(db === undefined ? {} : { db }) };
  const login = createLoginSourceFromSecrets(secrets);
  const location = { ...address, tls: tlsOptions(tls) };
  return { makeClient: async () => (await loadClientMaker(clientPackage, 'host')).makeClient(location, login) };
}

export function createGivenClientSource(client: RedisClient | NodeRedisClient): ClientSource {
  if (isNodeRedisClient(client)) {
    const givenClient = adaptNodeRedis(client);
    return { givenClient, makeClient: async () => givenClient, makeSubscriber: async () => givenClient.duplicate() };
  }
  return {
    givenClient: client,
    makeClient: async () => client,
    makeSubscriber: async () => withConnectionCheck(client.duplicate(createDuplicateOptions())),
  };
}
