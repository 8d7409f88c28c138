import type { DiscoveryService } from '@nestjs/core';
import { isLockService, type LockService } from '../../core/index.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';

/** Pattern of the tokens that `getLockServiceToken` returns for named backends. */
const SERVICE_TOKEN_PATTERN = /^LockService\((?<backend>.+)\)$/u;

export function lockServicesOf(discovery: DiscoveryService): Map<string, LockService> {
  const services = new Map<string, LockService>();
  const listedServices = new Set<LockService>();
  for (const { token, instance } of discovery.getProviders()) {
    if (!isLockService(instance) || listedServices.has(instance)) continue;
    listedServices.add(instance);
    const name = getBackendName(token);
    services.set(services.has(name) ? `${name} ${services.size + 1}` : name, instance);
  }
  return services;
}

function getBackendName(token: unknown): string {
  if (token === getLockServiceToken()) return DEFAULT_BACKEND;
  if (typeof token === 'function') return token.name;
  return SERVICE_TOKEN_PATTERN.exec(String(token))?.groups?.['backend'] ?? String(token);
}
