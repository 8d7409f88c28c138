import { Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { getFirstWordName, KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { lockServicesOf } from '../nest/module/lock-services-of.js';
import { LockSpans } from './lock-spans.js';

@Injectable()
class TracingStarter implements OnModuleInit {
  constructor(private readonly discovery: DiscoveryService) {}

  onModuleInit(): void {
    const templateNames = KeyTemplateNames.of(this.discovery);
    for (const locks of lockServicesOf(this.discovery).values()) {
      const templateOf = (prefixedKey: string): string => {
        const key = prefixedKey.slice(locks.keyPrefix.length);
        return templateNames.templateOf(key) ?? getFirstWordName(key);
      };
      locks.observe(new LockSpans({ templateOf }));
    }
  }
}

/** Records spans for all lock services of the application. Import this module beside `DistributedLockModule`. */
@Module({ imports: [DiscoveryModule], providers: [TracingStarter] })
export class LockTracingModule {}
