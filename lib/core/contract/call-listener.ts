import { stringifySafely } from './error-text.js';

/**
 * Calls a function of the application. An error, or the rejection of a returned promise, becomes a process warning, and
 * affects neither the caller nor other listeners.
 * @param occurrence beginning of the warning: `a lock observer threw`
 */
export function callListener<Result>(occurrence: string, call: () => Result): Result | undefined {
  const warn = (error: unknown): void => process.emitWarning(`${occurrence}: ${stringifySafely(error)}`);
  try {
    const result = call();
    // TypeScript also accepts an async function where the type returns nothing, and its promise may reject.
    if (typeof result === 'object' && result !== null && 'then' in result) Promise.resolve(result).catch(warn);
    return result;
  } catch (error) {
    warn(error);
    return undefined;
  }
}
