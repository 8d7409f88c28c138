import { LockConfigurationError } from '../../core/index.js';

/** Options may come from JavaScript or from the environment, so their types are checked too. Secrets are never shown. */

export function assertNumber(option: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'number' && value >= min && value <= max) return;
  refuse(option, `must be a number from ${min} to ${max}; it was ${show(value)}`);
}

export function assertWhole(option: string, value: unknown, min: number, max: number): void {
  if (Number.isInteger(value)) assertNumber(option, value, min, max);
  else refuse(option, `must be a whole number; it was ${show(value)}`);
}

export function assertSecret(option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'string') refuse(option, `must be text; it was of type ${typeof value}`);
}

export function assertTls(option: string, value: unknown): void {
  const fits = value === undefined || typeof value === 'boolean' || (typeof value === 'object' && value !== null);
  if (!fits) refuse(option, `must be true, false or options of node:tls; it was ${show(value)}`);
}

export function assertAddresses(option: string, value: unknown): void {
  if (!Array.isArray(value) || value.length === 0) {
    refuse(option, `must be a list of one or more { host, port }; it was ${show(value)}`);
  }
  for (const address of value) assertAddress(option, address);
}

export function assertAddress(option: string, value: unknown): void {
  const { host, port = 1 }: { host?: unknown; port?: unknown } = Object(value);
  const fits =
    typeof host === 'string' && host !== '' && Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
  if (!fits) refuse(option, `must have addresses like { host: '10.0.0.1', port: 6379 }; there was ${show(value)}`);
}

export function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
}

export function refuse(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}
