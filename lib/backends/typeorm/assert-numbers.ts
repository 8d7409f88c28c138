import { LockConfigurationError } from '../../core/index.js';

/** What numbers options take, in words and as a test. */
const KINDS = {
  'above 0': (value: number) => value > 0,
  'of 0 or more': (value: number) => value >= 0,
  /** What servers count in. */
  'from 1 to 2147483647': (value: number) => value >= 1 && value <= 2 ** 31 - 1,
  'above 0, and whole': (value: number) => Number.isInteger(value) && value > 0,
} as const;

/** @throws LockConfigurationError for each option that is given and is not such a number */
export function assertNumbers(kind: keyof typeof KINDS, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || (typeof value === 'number' && KINDS[kind](value))) continue;
    const given = typeof value === 'number' ? String(value) : JSON.stringify(value);
    throw new LockConfigurationError(`${option} must be a number ${kind}; it was ${given}`, option);
  }
}
