import { type Clock, systemClock } from '../time/timers.js';
import { within } from '../time/within.js';
import { errorText } from '../contract/error-text.js';

/** A value, or a function that is asked each time: for what changes during the process, such as a certificate. */
export type Given<T extends object> = T | (() => T | Promise<T>);

/** @throws Error when the function fails, or says nothing within `longestMs` */
export async function given<T extends object>(
  option: string,
  value: Given<T>,
  longestMs: number,
  clock: Clock = systemClock,
): Promise<T> {
  if (typeof value !== 'function') return value;
  const asked = Promise.resolve().then(value);
  try {
    if (await within(clock, longestMs, asked)) return await asked;
  } catch (error) {
    throw new Error(`the function ${option} failed: ${errorText(error)}`, { cause: error });
  }
  throw new Error(`the function ${option} said nothing within ${longestMs} ms`);
}
