import type { LockBackend } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { redis } from 'nestjs-distributed-lock/redis';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { databaseOptions } from './database/database-options.js';

/** What a backend is made of. */
interface LockSettings {
  /** The value of the choice's variable, or its fallback. */
  readonly server: string;
  /** Where the sale is. */
  readonly database: string;
  readonly ttlMs: number;
}

/** One choice of `LOCK_BACKEND`. */
interface LockBackendChoice {
  /** The environment variable that says where the server is. */
  readonly variable?: string;
  /** Where it is when the variable is not set. */
  readonly fallback?: string;
  readonly create: (settings: LockSettings) => LockBackend;
}

/** Where the locks live is one line of an application. Everything else in here does not know. */
const CHOICES = {
  sqlite: { create: ({ database }) => typeorm({ dataSource: { options: databaseOptions(database) } }) },
  redis: {
    variable: 'REDIS_URL',
    fallback: 'redis://127.0.0.1:6379',
    create: ({ server }) => redis({ url: server }),
  },
  memory: { create: () => memory() },
} satisfies Record<string, LockBackendChoice>;

export type BackendName = keyof typeof CHOICES;

export const LOCK_BACKENDS: Readonly<Record<BackendName, LockBackendChoice>> = CHOICES;
export const BACKEND_NAMES = Object.keys(CHOICES) as BackendName[];
