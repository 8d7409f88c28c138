import { importClient } from '../../../core/index.js';
import type { ClientMaker } from './client-settings.js';
import { importIoredis } from './ioredis.js';
import { importNodeRedis } from './node-redis.js';

/** Packages that make connections to Redis, in the order of preference. */
export const CLIENT_PACKAGES = ['ioredis', 'redis'] as const;

export type RedisClientPackage = (typeof CLIENT_PACKAGES)[number];

const IMPORT_BY_PACKAGE = { ioredis: importIoredis, redis: importNodeRedis };
const DESCRIPTION_BY_PACKAGE = { ioredis: 'ioredis, version 5 or 6', redis: 'redis, version 5 or 6' };

const makerPromiseByPackage = new Map<RedisClientPackage | undefined, Promise<ClientMaker>>();

/**
 * @param clientPackage `undefined` for the first package of `CLIENT_PACKAGES` that is installed
 * @throws LockConfigurationError when the package is not installed
 */
export function loadClientMaker(clientPackage: RedisClientPackage | undefined, option: string): Promise<ClientMaker> {
  const names = clientPackage === undefined ? CLIENT_PACKAGES : [clientPackage];
  return importClient(() => importOnce(clientPackage), {
    name: names.map((name) => DESCRIPTION_BY_PACKAGE[name]).join(', or '),
    install: clientPackage ?? CLIENT_PACKAGES.join(', or npm install '),
    neededBy: `redis({ ${option} })`,
    option,
  });
}

function importOnce(clientPackage: RedisClientPackage | undefined): Promise<ClientMaker> {
  const earlierPromise = makerPromiseByPackage.get(clientPackage);
  if (earlierPromise) return earlierPromise;
  const makerPromise = clientPackage === undefined ? importFirstInstalled() : IMPORT_BY_PACKAGE[clientPackage]();
  makerPromiseByPackage.set(clientPackage, makerPromise);
  makerPromise.catch(() => makerPromiseByPackage.delete(clientPackage));
  return makerPromise;
}

async function importFirstInstalled(): Promise<ClientMaker> {
  try {
    return await importIoredis();
  } catch (error) {
    if (!isMissingModuleError(error)) throw error;
    return importNodeRedis();
  }
}

function isMissingModuleError(error: unknown): boolean {
  return String(Reflect.get(Object(error), 'code')).endsWith('MODULE_NOT_FOUND');
}
