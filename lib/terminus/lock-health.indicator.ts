import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { type BackendHealth, LockConfigurationError, type LockService } from '../core/index.js';
import { DEFAULT_BACKEND } from '../nest/inject-lock-service.decorator.js';
import { findLockServices } from '../nest/module/lock-services-of.js';

/** Details of a check, besides its `status`. */
export interface LockHealthDetails extends Omit<BackendHealth, 'status'> {
  /** Kind of the backend, such as `redis`. */
  readonly backend: string;
  /** Number of locks that this process holds. */
  readonly held: number;
  /** Number of held locks whose renewal is late or has failed. */
  readonly inJeopardy: number;
}

/**
 * Checks the health of a backend for `@nestjs/terminus` 11 and later: `up` or `down`, with the state of each server and
 * with advice. The indicator sends requests only while the backend's health is `idle`. `LockHealthModule` provides it.
 */
@Injectable()
export class LockHealthIndicator {
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly discovery: DiscoveryService,
  ) {}

  /**
   * Returns the health of a backend.
   * @param key the name of the result
   * @param backend the name in `backends` of `DistributedLockModule`
   * @throws LockConfigurationError there is no such backend
   */
  async check<Key extends string>(key: Key, backend = DEFAULT_BACKEND): Promise<HealthIndicatorResult<Key>> {
    const locks = this.#findService(backend);
    const { status, ...healthDetails } = await determineHealth(locks);
    const heldLocks = locks.inspect();
    const details: LockHealthDetails = {
      backend: locks.backend.name,
      held: heldLocks.length,
      inJeopardy: heldLocks.filter(({ state }) => state === 'jeopardy').length,
      ...healthDetails,
    };
    const indicator = this.indicators.check(key);
    return status === 'up' ? indicator.up({ ...details }) : indicator.down({ ...details });
  }

  #findService(backend: string): LockService {
    const services = findLockServices(this.discovery);
    const service = services.get(backend);
    if (service) return service;
    const names = [...services.keys()].join(', ');
    throw new LockConfigurationError(`there is no backend ${JSON.stringify(backend)}, only [${names}]`, 'backend');
  }
}

/**
 * Returns the health. Starts the backend if the health is `idle`. A store that reports no health counts as `up` until
 * its requests fail.
 */
async function determineHealth(locks: LockService): Promise<BackendHealth> {
  if (locks.health.status === 'idle') {
    if (!locks.backend.store.health) return { status: 'up' };
    await locks.start();
  }
  const { health } = locks;
  return health.status === 'idle' ? { ...health, detail: 'nothing was heard of the server yet' } : health;
}
