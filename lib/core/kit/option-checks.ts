import { LockConfigurationError } from '../contract/errors.js';

// Options may come from JavaScript or from the environment, so their types are checked, too.

/** @throws LockConfigurationError that begins with the name of the option */
export function refuseOption(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}

/** A value for a message. Never of a secret. */
export function shownOption(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
}

/** Refuses what is no object, and every option that `backend` does not have. */
export function assertOptions(given: unknown, known: readonly string[], backend: string): void {
  if (typeof given !== 'object' || given === null) {
    refuseOption('options', `must be an object; they were ${shownOption(given)}`);
  }
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) refuseOption(unknown, `is no ${backend} option; there are ${known.join(', ')}`);
}

export function assertNumber(option: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'number' && value >= min && value <= max) return;
  refuseOption(option, `must be a number from ${min} to ${max}; it was ${shownOption(value)}`);
}

/** @param expected what `pattern` says, in words */
export function assertText(option: string, value: unknown, pattern: RegExp, expected: string): void {
  if (typeof value === 'string' && pattern.test(value)) return;
  refuseOption(option, `must be ${expected}; it was ${shownOption(value)}`);
}

export function assertOneOf(option: string, value: unknown, choices: readonly string[]): void {
  if (choices.some((choice) => choice === value)) return;
  refuseOption(option, `must be one of ${choices.join(', ')}; it was ${shownOption(value)}`);
}
