import {
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { getFirstWordName, KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { findLockServices } from '../nest/module/lock-services-of.js';
import { LockMetrics, type LockMetricsOptions } from './lock-metrics.js';

export interface LockMetricsModuleOptions extends LockMetricsOptions {
  /**
   * Returns the label `template` of a key that comes from no `@Locked`, given the key without its namespace. The labels
   * should be few, because Prometheus keeps a series for each, and should have no personal data.
   * @default the first word, and `*` for the rest
   */
  readonly templateOf?: (key: string) => string;
}

const TEMPLATE_OF_TOKEN = Symbol('templateOf of LockMetricsModule');

@Injectable()
class MetricsStarter implements OnModuleInit, OnApplicationShutdown {
  readonly #stopFunctions: (() => void)[] = [];

  constructor(
    private readonly metrics: LockMetrics,
    private readonly discovery: DiscoveryService,
    @Inject(TEMPLATE_OF_TOKEN) private readonly fallbackTemplateOf: (key: string) => string,
  ) {}

  onModuleInit(): void {
    const templateNames = KeyTemplateNames.of(this.discovery);
    const templateOf = (key: string): string => templateNames.templateOf(key) ?? this.fallbackTemplateOf(key);
    for (const [backend, locks] of findLockServices(this.discovery)) {
      this.#stopFunctions.push(
        this.metrics.observe(locks, { backend, templateOf, templates: templateNames.templates }),
      );
    }
  }

  onApplicationShutdown(): void {
    for (const stop of this.#stopFunctions.splice(0)) stop();
  }
}

/**
 * Records the metrics of all lock services of the application in a registry of prom-client. Import the module beside
 * `DistributedLockModule`, and print the registry in an endpoint of your application.
 */
@Module({})
export class LockMetricsModule {
  /** @throws LockConfigurationError */
  static forRoot({ templateOf = getFirstWordName, ...options }: LockMetricsModuleOptions = {}): DynamicModule {
    return {
      module: LockMetricsModule,
      imports: [DiscoveryModule],
      providers: [
        { provide: LockMetrics, useFactory: () => LockMetrics.of(options) },
        { provide: TEMPLATE_OF_TOKEN, useValue: templateOf },
        MetricsStarter,
      ],
      exports: [LockMetrics],
    };
  }
}
