import { emitWarningOf } from './observers.js';

/** Calls a tracer. An error becomes a process warning, and affects neither locks nor other tracers. */
export function callTracer<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    emitWarningOf('a lock tracer threw', error);
    return undefined;
  }
}
