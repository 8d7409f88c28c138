import { Module } from '@nestjs/common';
import { CrowdController } from './crowd.controller.js';
import { LiveEvents } from './live-events.js';
import { LiveController } from './live.controller.js';
import { MetricsController } from './metrics.controller.js';

@Module({
  controllers: [LiveController, CrowdController, MetricsController],
  providers: [LiveEvents],
  exports: [LiveEvents],
})
export class LiveModule {}
