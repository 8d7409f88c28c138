import type { INestApplication, LogLevel } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { readSettings } from '../../sample-app/settings.js';
import { type BackendName, LOCK_BACKENDS } from './lock-backends.js';
import { ShopModule } from './shop.module.js';

/** @param env the variables of the sample, and the backend's own with the address of its server */
export async function createShop(
  backend: BackendName,
  env: NodeJS.ProcessEnv,
  logger: LogLevel[] = ['fatal', 'error', 'warn'],
): Promise<INestApplication> {
  const { variable = '' } = LOCK_BACKENDS[backend];
  const app = await NestFactory.create(await ShopModule.with(backend, env[variable] ?? '', readSettings(env)), {
    logger,
  });
  return app.enableShutdownHooks();
}
