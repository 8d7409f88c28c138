import { errorText } from '../contract/error-text.js';

/**
 * Returns a function that calls `call`, a function of the application, and returns the result of `fallback` when `call`
 * throws. The first error becomes a process warning.
 * @param occurrence beginning of the warning: `templateOf of locks threw`
 */
export function withFallback<Argument, Result, Fallback>(
  occurrence: string,
  call: (argument: Argument) => Result,
  fallback: (argument: Argument) => Fallback,
): (argument: Argument) => Result | Fallback {
  let hasWarned = false;
  return (argument) => {
    try {
      return call(argument);
    } catch (error) {
      if (!hasWarned) process.emitWarning(`${occurrence}: ${errorText(error)}`);
      hasWarned = true;
      return fallback(argument);
    }
  };
}
