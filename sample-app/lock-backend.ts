import type { LockBackend } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { redis } from 'nestjs-distributed-lock/redis';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import type { DataSource } from 'typeorm';
import type { BackendName, Settings } from './settings.js';

/** Where the locks live is one line of an application. Everything else in here does not know. */
const LOCK_BACKENDS: Readonly<Record<BackendName, (redisUrl: string, dataSource: DataSource) => LockBackend>> = {
  sqlite: (_, dataSource) => typeorm({ dataSource }),
  redis: (url) => redis({ url }),
  memory: () => memory(),
};

export function lockBackend(settings: Pick<Settings, 'backend' | 'redisUrl'>, dataSource: DataSource): LockBackend {
  return LOCK_BACKENDS[settings.backend](settings.redisUrl, dataSource);
}
