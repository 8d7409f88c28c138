import { hostname } from 'node:os';
import { type DynamicModule, Module } from '@nestjs/common';
import { assertDatabase } from './database/database-type.js';
import { BACKEND_NAMES, type BackendName, LOCK_BACKENDS } from './lock-backends.js';

export interface Settings {
  readonly port: number;
  readonly backend: BackendName;
  /** Where the server of the locks is; empty for those that have none. May contain a password, as may `saleDb`. */
  readonly server: string;
  /** Sales and orders: a SQLite file, with the `sqlite` backend also for the locks, or the URL of a database. */
  readonly saleDb: string;
  /** Pieces of sale 42 when its database is new. */
  readonly stock: number;
  /** How long the pretended payment takes: the time between reading the stock and writing it. */
  readonly paymentMs: number;
  readonly ttlMs: number;
  /** How this process is named on the page and to those who wait for it. */
  readonly label: string;
  /** Sells without lock and fence, to show what happens then. */
  readonly unsafe: boolean;
}

export const SETTINGS = Symbol('SETTINGS');

@Module({})
export class SettingsModule {
  static with(settings: Settings): DynamicModule {
    const provider = { provide: SETTINGS, useValue: settings };
    return { module: SettingsModule, global: true, providers: [provider], exports: [SETTINGS] };
  }
}

/** @throws Error that names the variable, what it was and what it may be */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const backend = oneOf('LOCK_BACKEND', env['LOCK_BACKEND'] ?? 'sqlite', BACKEND_NAMES);
  const { variable = '', fallback = '', database } = LOCK_BACKENDS[backend];
  const server = env[variable] ?? fallback;
  if (database) assertDatabase(variable, server, [database]);
  const saleDb = env['SALE_DB'] ?? (database ? server : 'data/sale.sqlite');
  assertDatabase('SALE_DB', saleDb, backend === 'sqlite' ? ['sqlite'] : ['sqlite', 'postgres', 'mariadb']);
  return {
    port: whole('PORT', env['PORT'] ?? '3000', 0, 65_535),
    backend,
    server,
    saleDb,
    stock: whole('STOCK', env['STOCK'] ?? '100', 1, 1_000_000),
    paymentMs: whole('PAYMENT_MS', env['PAYMENT_MS'] ?? '20', 0, 60_000),
    ttlMs: whole('LOCK_TTL_MS', env['LOCK_TTL_MS'] ?? '5000', 100, 3_600_000),
    label: env['LABEL'] ?? hostname(),
    unsafe: oneOf('UNSAFE', env['UNSAFE'] ?? '0', ['0', '1'] as const) === '1',
  };
}

function whole(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/u.test(text) && value >= min && value <= max) return value;
  throw new Error(`${name} must be a whole number from ${min} to ${max}; it was ${JSON.stringify(text)}`);
}

function oneOf<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === text);
  if (found !== undefined) return found;
  throw new Error(`${name} must be one of ${allowed.join(', ')}; it was ${JSON.stringify(text)}`);
}
