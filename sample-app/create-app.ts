import { join } from 'node:path';
import type { LogLevel } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';
import type { Settings } from './settings.js';

const LOG_LEVELS: LogLevel[] = ['fatal', 'error', 'warn', 'log'];

export async function createApp(settings: Settings, logger = LOG_LEVELS): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule.with(settings), { logger });
  app.useStaticAssets(join(import.meta.dirname, 'public'));
  app.enableShutdownHooks();
  return app;
}
