import type { DiscoveryService } from '@nestjs/core';
import { isLockService, type LockService } from '../../core/index.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';

/** Returns each lock service of an application once, by the name of its backend. */
export function lockServicesOf(discovery: DiscoveryService): Map<string, LockService> {
  const services = new Map<string, LockService>();
  const seen = new Set<LockService>();
  for (const { token, instance } of discovery.getProviders()) {
    if (!isLockService(instance) || seen.has(instance)) continue;
    seen.add(instance);
    const [, backend] = /^LockService\((.+)\)$/u.exec(String(token)) ?? [];
    const name = token === getLockServiceToken() ? DEFAULT_BACKEND : (backend ?? getTokenName(token));
    services.set(services.has(name) ? `${name} ${services.size + 1}` : name, instance);
  }
  return services;
}

function getTokenName(token: unknown): string {
  return typeof token === 'function' ? token.name : String(token);
}
