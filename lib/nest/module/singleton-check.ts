import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError } from '../../core/index.js';
import { LOCK_SERVICES } from '../inject-lock-service.decorator.js';

/**
 * Refuses lock services that Nest makes for each request: they would not see each other's locks, and nothing would
 * close them. This class does not depend on the options, so that Nest makes it at the start in any case.
 */
@Injectable()
export class SingletonCheck implements OnModuleInit {
  constructor(private readonly modules: ModulesContainer) {}

  /** @throws LockConfigurationError */
  onModuleInit(): void {
    for (const { providers } of this.modules.values()) {
      if (providers.get(LOCK_SERVICES)?.isDependencyTreeStatic() !== false) continue;
      throw new LockConfigurationError(
        'the options of DistributedLockModule depend on a provider that is made for each request or tenant, and so would ' +
          'its locks be: nobody would wait for anybody else. Give it providers that are made once; for locks of tenants, ' +
          "write the tenant into the keys, as in @Locked('tenant_:user.tenant.sale_:id')",
        'inject',
      );
    }
  }
}
