import { type Clock, within } from '../../core/index.js';
import { MemcachedError } from './error.js';

/** A value, or a function that is asked for it whenever a connection is made: what changes, such as a certificate, stays fresh. */
export type Given<T extends object> = T | (() => T | Promise<T>);

/** What was given, or what its function says now. @throws MemcachedError when it does not in the time for a connection */
export async function given<T extends object>(
  option: string,
  value: Given<T>,
  { clock, connectTimeoutMs }: { readonly clock: Clock; readonly connectTimeoutMs: number },
): Promise<T> {
  if (typeof value !== 'function') return value;
  const asked = Promise.resolve().then(value);
  try {
    if (await within(clock, connectTimeoutMs, asked)) return await asked;
  } catch (error) {
    throw new MemcachedError('not-sent', `the function ${option} failed: ${String(error)}`, { cause: error });
  }
  throw new MemcachedError('not-sent', `the function ${option} said nothing within ${connectTimeoutMs} ms`);
}
