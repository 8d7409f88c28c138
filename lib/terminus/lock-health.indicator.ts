import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { type BackendHealth, LockConfigurationError, type LockService } from '../core/index.js';
import { DEFAULT_BACKEND } from '../nest/inject-lock-service.decorator.js';
import { lockServicesOf } from '../nest/module/lock-services-of.js';

/** What a check shows besides `status`. */
export interface LockHealthDetails extends Omit<BackendHealth, 'status'> {
  /** The kind of backend: `redis`. */
  readonly backend: string;
  /** Locks that this process holds. */
  readonly held: number;
  /** How many of them are in doubt. */
  readonly inJeopardy: number;
}

/**
 * Checks a backend for `@nestjs/terminus`, from 11 on: `up` or `down`, with its servers one by one and with advice. Asks
 * the server only while nothing is known of it, which is `idle` elsewhere. Provided by `LockHealthModule`.
 */
@Injectable()
export class LockHealthIndicator {
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly discovery: DiscoveryService,
  ) {}

  /**
   * @param key as the result is to be named
   * @param backend as in `backends` of `DistributedLockModule`
   * @throws LockConfigurationError there is no such backend
   */
  async check<Key extends string>(key: Key, backend = DEFAULT_BACKEND): Promise<HealthIndicatorResult<Key>> {
    const locks = this.#service(backend);
    const { status, ...known } = await healthOf(locks);
    const held = locks.inspect();
    const details: LockHealthDetails = {
      backend: locks.backend.name,
      held: held.length,
      inJeopardy: held.filter(({ state }) => state === 'jeopardy').length,
      ...known,
    };
    const indicator = this.indicators.check(key);
    return status === 'up' ? indicator.up({ ...details }) : indicator.down({ ...details });
  }

  #service(backend: string): LockService {
    const services = lockServicesOf(this.discovery);
    const found = services.get(backend);
    if (found) return found;
    const names = [...services.keys()].join(', ');
    throw new LockConfigurationError(`there is no backend ${JSON.stringify(backend)}, only [${names}]`, 'backend');
  }
}

/** A backend without a server, as in memory, knows of no trouble. */
async function healthOf(locks: LockService): Promise<BackendHealth> {
  if (!locks.backend.store.health) return { status: 'up' };
  if (locks.health.status === 'idle') await locks.start();
  const { health } = locks;
  return health.status === 'idle' ? { ...health, detail: 'nothing was heard of the server yet' } : health;
}
