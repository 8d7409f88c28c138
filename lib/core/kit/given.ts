import { type Clock, systemClock } from '../time/timers.js';
import { settlesWithin } from '../time/within.js';
import { errorText } from '../contract/error-text.js';

/** Value, or function that returns it each time, for a value that changes, such as a certificate. */
export type Given<T extends object> = T | (() => T | Promise<T>);

/** Returns the present value. @throws Error when the function fails, or does not answer within `maxMs` */
export async function resolveGiven<T extends object>(
  option: string,
  value: Given<T>,
  maxMs: number,
  clock: Clock = systemClock,
): Promise<T> {
  if (typeof value !== 'function') return value;
  const asked = Promise.resolve().then(value);
  try {
    if (await settlesWithin(clock, maxMs, asked)) return await asked;
  } catch (error) {
    throw new Error(`the function ${option} failed: ${errorText(error)}`, { cause: error });
  }
  throw new Error(`the function ${option} said nothing within ${maxMs} ms`);
}
