import type { DiscoveryService } from '@nestjs/core';
import { isLockService, type LockService } from '../../core/index.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';

/** Pattern of the tokens that `getLockServiceToken` returns for named backends. */
const SERVICE_TOKEN_PATTERN = /^LockService\((?<backend>.+)\)$/u;

type ListedProvider = ReturnType<DiscoveryService['getProviders']>[number];

/** Returns the lock services by the names of their backends. A service with several tokens is listed once. */
export function findLockServices(discovery: DiscoveryService): Map<string, LockService> {
  const services = new Map<string, LockService>();
  const listedServices = new Set<LockService>();
  const providers = discovery.getProviders().toSorted((one, other) => rankProvider(one) - rankProvider(other));
  for (const { token, instance } of providers) {
    if (!isLockService(instance) || listedServices.has(instance)) continue;
    listedServices.add(instance);
    const name = getBackendName(token);
    // Modules that are not global may have backends of the same name.
    services.set(services.has(name) ? `${name} ${services.size + 1}` : name, instance);
  }
  return services;
}

/** Ranks tokens of `DistributedLockModule` before those of the application, and aliases after their providers. */
function rankProvider({ token, isAlias }: Pick<ListedProvider, 'token' | 'isAlias'>): number {
  return (isServiceToken(token) ? 0 : 2) + (isAlias ? 1 : 0);
}

function isServiceToken(token: unknown): boolean {
  return token === getLockServiceToken() || (typeof token === 'string' && SERVICE_TOKEN_PATTERN.test(token));
}

function getBackendName(token: unknown): string {
  if (token === getLockServiceToken()) return DEFAULT_BACKEND;
  if (typeof token === 'function') return token.name;
  return SERVICE_TOKEN_PATTERN.exec(String(token))?.groups?.['backend'] ?? String(token);
}
