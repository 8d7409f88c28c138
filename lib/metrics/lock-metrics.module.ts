import {
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { keyFamily, KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { lockServicesOf } from '../nest/module/lock-services-of.js';
import { LockMetrics, type LockMetricsOptions } from './lock-metrics.js';

export interface LockMetricsModuleOptions extends LockMetricsOptions {
  /**
   * The label `template` of a key that no `@Locked` makes, without its namespace. Few values, and nothing about people:
   * each is a series for ever. @default its first word, and `*` for all that follows
   */
  readonly templateOf?: (key: string) => string;
}

/** The option that is the module's own. */
const TEMPLATE_OF = Symbol('templateOf of LockMetricsModule');

@Injectable()
class ApplicationMetrics implements OnModuleInit, OnApplicationShutdown {
  readonly #stops: (() => void)[] = [];

  constructor(
    private readonly metrics: LockMetrics,
    private readonly discovery: DiscoveryService,
    @Inject(TEMPLATE_OF) private readonly familyOf: (key: string) => string,
  ) {}

  onModuleInit(): void {
    const names = KeyTemplateNames.of(this.discovery);
    const templateOf = (key: string): string => names.templateOf(key) ?? this.familyOf(key);
    for (const [backend, locks] of lockServicesOf(this.discovery)) {
      this.#stops.push(this.metrics.observe(locks, { backend, templateOf, templates: names.templates }));
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
  static forRoot({ templateOf = keyFamily, ...options }: LockMetricsModuleOptions = {}): DynamicModule {
    return {
      module: LockMetricsModule,
      imports: [DiscoveryModule],
      providers: [
        { provide: LockMetrics, useFactory: () => LockMetrics.of(options) },
        { provide: TEMPLATE_OF, useValue: templateOf },
        ApplicationMetrics,
      ],
      exports: [LockMetrics],
    };
  }
}
