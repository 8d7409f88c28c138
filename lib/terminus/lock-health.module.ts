import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { LockHealthIndicator } from './lock-health.indicator.js';

/** Gives `LockHealthIndicator` to the modules that import it. */
@Module({
  imports: [DiscoveryModule, TerminusModule],
  providers: [LockHealthIndicator],
  exports: [LockHealthIndicator],
})
export class LockHealthModule {}
