import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { LockHealthIndicator } from './lock-health.indicator.js';

/** Provides `LockHealthIndicator` to the modules that import this one. */
@Module({
  imports: [DiscoveryModule, TerminusModule],
  providers: [LockHealthIndicator],
  exports: [LockHealthIndicator],
})
export class LockHealthModule {}
