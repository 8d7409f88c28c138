import { type Clock, systemClock } from '../time/timers.js';
import { isFulfilledWithin } from '../time/within.js';
import { errorText } from '../contract/error-text.js';

/** Option that is a value, or a function that returns the present value, such as a certificate that is replaced. */
export type ValueOrGetter<T extends object> = T | (() => T | Promise<T>);

/** Returns the present value of an option. @throws Error when its function fails, or takes longer than `maxMs` */
export async function getPresentValue<T extends object>(
  option: string,
  value: ValueOrGetter<T>,
  maxMs: number,
  clock: Clock = systemClock,
): Promise<T> {
  if (typeof value !== 'function') return value;
  const valuePromise = Promise.resolve().then(value);
  try {
    if (await isFulfilledWithin(clock, maxMs, valuePromise)) return await valuePromise;
  } catch (error) {
    throw new Error(`the function ${option} failed: ${errorText(error)}`, { cause: error });
  }
  throw new Error(`the function ${option} said nothing within ${maxMs} ms`);
}
