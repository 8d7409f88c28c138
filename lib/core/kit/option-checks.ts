import { inspect } from 'node:util';
import { LockConfigurationError } from '../contract/errors.js';

// The types of options are checked at run time, too: options may come from JavaScript or from the environment.

/** @throws LockConfigurationError that begins with the name of the option */
export function refuseOption(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}

/** Returns a value as text for a message, shortened and on one line. Must not be used for secrets. */
export function shownOption(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return inspect(value, { depth: 1, maxStringLength: 50, breakLength: Infinity });
}

/**
 * Refuses a value that is no object, and unknown names of options.
 * @param callName name of the call, for the message
 */
export function assertOptions(options: unknown, knownNames: readonly string[], callName: string): void {
  if (!isObject(options)) refuseOption('options', `must be an object; they were ${shownOption(options)}`);
  const unknownName = Object.keys(options).find((name) => !knownNames.includes(name));
  if (unknownName !== undefined)
    refuseOption(unknownName, `is no ${callName} option; there are ${knownNames.join(', ')}`);
}

export function assertNumber(option: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'number' && value >= min && value <= max) return;
  refuseOption(option, `must be ${describeRange('a number', min, max)}; it was ${shownOption(value)}`);
}

export function assertWhole(option: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return;
  refuseOption(option, `must be ${describeRange('a whole number', min, max)}; it was ${shownOption(value)}`);
}

export function assertBoolean(option: string, value: unknown): void {
  if (typeof value !== 'boolean') refuseOption(option, `must be true or false; it was ${shownOption(value)}`);
}

/** @param expected description of `pattern`, for the message */
export function assertText(option: string, value: unknown, pattern: RegExp, expected: string): void {
  if (typeof value === 'string' && pattern.test(value)) return;
  refuseOption(option, `must be ${expected}; it was ${shownOption(value)}`);
}

export function assertOneOf(option: string, value: unknown, choices: readonly string[]): void {
  if (choices.some((choice) => choice === value)) return;
  refuseOption(option, `must be one of ${choices.join(', ')}; it was ${shownOption(value)}`);
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function describeRange(numberType: string, min: number, max: number): string {
  return max === Infinity ? `${numberType} from ${min} up, or Infinity` : `${numberType} from ${min} to ${max}`;
}
