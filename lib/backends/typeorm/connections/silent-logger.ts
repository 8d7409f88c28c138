import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'typeorm';

/** Logs nothing: the statements of the locks have keys and owner ids, which are secrets, and are many while some wait. */
export const SILENT_LOGGER: Logger = {
  logQuery: () => undefined,
  logQueryError: () => undefined,
  logQuerySlow: () => undefined,
  logSchemaBuild: () => undefined,
  logMigration: () => undefined,
  log: () => undefined,
};

const silence = new AsyncLocalStorage<true>();

/** Runs a statement of the locks' on a connection that the application writes through, unseen by its logger. */
export function runUnlogged<T>(statement: () => T): T {
  return silence.run(true, statement);
}

/** The application's logger, for all statements but those of `runUnlogged`. */
export function loggerOfOthers(logger: Logger): Logger {
  const current = (): Logger => (silence.getStore() ? SILENT_LOGGER : logger);
  return {
    logQuery: (...args) => current().logQuery(...args),
    logQueryError: (...args) => current().logQueryError(...args),
    logQuerySlow: (...args) => current().logQuerySlow(...args),
    logSchemaBuild: (...args) => current().logSchemaBuild(...args),
    logMigration: (...args) => current().logMigration(...args),
    log: (...args) => current().log(...args),
  };
}
