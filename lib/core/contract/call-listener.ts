import { textOf } from './error-text.js';

/**
 * Calls a function that the application has given. Its error becomes a process warning, also that of a promise that it
 * returns, and affects neither the caller nor other listeners.
 * @param occurrence beginning of the warning: `a lock observer threw`
 */
export function callListener<Result>(occurrence: string, call: () => Result): Result | undefined {
  const warn = (error: unknown): void => process.emitWarning(`${occurrence}: ${textOf(error)}`);
  try {
    const result = call();
    // An async function fits a type that returns nothing, too, and its promise may reject.
    if (typeof result === 'object' && result !== null) Promise.resolve(result).catch(warn);
    return result;
  } catch (error) {
    warn(error);
    return undefined;
  }
}
