import { type DynamicModule, Inject, Injectable, Module, type OnModuleInit, Optional } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import type { LockService } from '../core/index.js';
import { getFirstWordName, KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { findLockServices } from '../nest/module/lock-services-of.js';
import { LockSpans, type LockSpansOptions } from './lock-spans.js';

export interface LockTracingModuleOptions extends Pick<LockSpansOptions, 'tracerProvider'> {
  /**
   * Returns the template, such as `sale:*`, that names the spans of a key without a template of `@Locked`. The key has
   * no namespace.
   * @default the first word, and `*` for the rest
   */
  readonly templateOf?: (key: string) => string;
}

const OPTIONS_TOKEN = Symbol('options of LockTracingModule');

/** Services with spans. Several modules may import `LockTracingModule`; the options of the first one count. */
const tracedServices = new WeakSet<LockService>();

@Injectable()
class TracingStarter implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    @Optional() @Inject(OPTIONS_TOKEN) private readonly options: LockTracingModuleOptions = {},
  ) {}

  onModuleInit(): void {
    const { templateOf: fallbackTemplateOf = getFirstWordName, ...options } = this.options;
    const templateNames = KeyTemplateNames.of(this.discovery);
    const { templates } = templateNames;
    for (const locks of findLockServices(this.discovery).values()) {
      if (tracedServices.has(locks)) continue;
      tracedServices.add(locks);
      const templateOf = (prefixedKey: string): string => {
        const key = prefixedKey.slice(locks.keyPrefix.length);
        return templateNames.templateOf(key) ?? fallbackTemplateOf(key);
      };
      locks.observe(new LockSpans({ ...options, templateOf, templates }));
    }
  }
}

/**
 * Records spans for all lock services of the application. Import this module beside `DistributedLockModule`, by
 * `forRoot` where it needs options.
 */
@Module({ imports: [DiscoveryModule], providers: [TracingStarter] })
export class LockTracingModule {
  static forRoot(options: LockTracingModuleOptions = {}): DynamicModule {
    return { module: LockTracingModule, providers: [{ provide: OPTIONS_TOKEN, useValue: options }] };
  }
}
