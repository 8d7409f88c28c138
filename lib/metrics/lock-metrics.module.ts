import { type DynamicModule, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { lockServicesOf } from '../nest/module/lock-services-of.js';
import { LockMetrics, type LockMetricsOptions } from './lock-metrics.js';

@Injectable()
class ApplicationMetrics implements OnModuleInit, OnApplicationShutdown {
  readonly #stops: (() => void)[] = [];

  constructor(
    private readonly metrics: LockMetrics,
    private readonly discovery: DiscoveryService,
  ) {}

  onModuleInit(): void {
    const names = KeyTemplateNames.of(this.discovery);
    const templateOf = (key: string): string => names.nameOf(key);
    for (const [backend, locks] of lockServicesOf(this.discovery)) {
      this.#stops.push(this.metrics.observe(locks, { backend, templateOf }));
    }
  }

  onApplicationShutdown(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }
}

/**
 * Keeps the metrics of all lock services of the application, for an endpoint of yours that prints the registry. Import it
 * beside `DistributedLockModule`.
 */
@Module({})
export class LockMetricsModule {
  /** @throws LockConfigurationError */
  static forRoot(options: LockMetricsOptions = {}): DynamicModule {
    return {
      module: LockMetricsModule,
      imports: [DiscoveryModule],
      providers: [{ provide: LockMetrics, useFactory: () => LockMetrics.of(options) }, ApplicationMetrics],
      exports: [LockMetrics],
    };
  }
}
