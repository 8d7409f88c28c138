import { hostname } from 'node:os';
import { type DynamicModule, Module } from '@nestjs/common';

export interface Settings {
  readonly port: number;
  /** Path of the SQLite file with the sales, the orders and the locks. */
  readonly saleDb: string;
  /** Number of pieces that sale 42 has in a new database. */
  readonly stock: number;
  /** Duration of a payment, between reading the stock and writing it. */
  readonly paymentMs: number;
  readonly ttlMs: number;
  /** Name by which waiters for a lock see this process as its holder. */
  readonly label: string;
}

export const SETTINGS = Symbol('SETTINGS');

@Module({})
export class SettingsModule {
  static with(settings: Settings): DynamicModule {
    const provider = { provide: SETTINGS, useValue: settings };
    return { module: SettingsModule, global: true, providers: [provider], exports: [SETTINGS] };
  }
}

/** @throws Error that names the variable and its limits */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    port: readInteger('PORT', env['PORT'] ?? '3000', 0, 65_535),
    saleDb: env['SALE_DB'] ?? 'data/sale.sqlite',
    stock: readInteger('STOCK', env['STOCK'] ?? '100', 1, 1_000_000),
    paymentMs: readInteger('PAYMENT_MS', env['PAYMENT_MS'] ?? '20', 0, 60_000),
    ttlMs: readInteger('LOCK_TTL_MS', env['LOCK_TTL_MS'] ?? '5000', 100, 3_600_000),
    label: env['LABEL'] ?? hostname(),
  };
}

function readInteger(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/u.test(text) && value >= min && value <= max) return value;
  throw new Error(`${name} must be a whole number from ${min} to ${max}; it was ${JSON.stringify(text)}`);
}
