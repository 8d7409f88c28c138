import type { DiscoveryService } from '@nestjs/core';
import { isLockService, type LockService } from '../../core/index.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';

/** Those of an application, each once, by the names of their backends. */
export function lockServicesOf(discovery: DiscoveryService): Map<string, LockService> {
  const named = new Map<string, LockService>();
  const seen = new Set<LockService>();
  for (const { token, instance } of discovery.getProviders()) {
    if (!isLockService(instance) || seen.has(instance)) continue;
    seen.add(instance);
    const [, backend] = /^LockService\((.+)\)$/u.exec(String(token)) ?? [];
    const name = token === getLockServiceToken() ? DEFAULT_BACKEND : (backend ?? nameOfToken(token));
    named.set(named.has(name) ? `${name} ${named.size + 1}` : name, instance);
  }
  return named;
}

function nameOfToken(token: unknown): string {
  return typeof token === 'function' ? token.name : String(token);
}
