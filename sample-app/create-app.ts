import { join } from 'node:path';
import { Logger, type LogLevel } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';
import type { Settings } from './settings.js';

const WARNING = `
############################################################
##  UNSAFE=1: selling without lock and without fence.     ##
##  This oversells. It exists to show that, nothing else. ##
############################################################`;

export async function createApp(
  settings: Settings,
  logLevels: LogLevel[] = ['fatal', 'error', 'warn', 'log'],
): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule.with(settings), { logger: logLevels });
  app.useStaticAssets(join(import.meta.dirname, 'public'));
  app.enableShutdownHooks();
  if (settings.unsafe) new Logger('FlashSale').warn(WARNING);
  return app;
}
