import { within } from '../../core/index.js';
import type { LinkOptions } from './link.js';
import { MemcachedFailure } from './memcached-failure.js';
import type { Given } from './memcached-options.js';

/** What was given, or what its function says now. @throws MemcachedFailure when it does not in the time for a connection */
export async function given<T extends object>(
  option: string,
  value: Given<T>,
  { clock, connectTimeoutMs }: Pick<LinkOptions, 'clock' | 'connectTimeoutMs'>,
): Promise<T> {
  if (typeof value !== 'function') return value;
  const asked = Promise.resolve().then(value);
  try {
    if (await within(clock, connectTimeoutMs, asked)) return await asked;
  } catch (error) {
    throw new MemcachedFailure('not-sent', `the function ${option} failed: ${String(error)}`, { cause: error });
  }
  throw new MemcachedFailure('not-sent', `the function ${option} said nothing within ${connectTimeoutMs} ms`);
}
