import type { Logger } from 'typeorm';
import { isUnlogged } from '../sql/connections/unlogged.js';

/** Logs nothing: the statements of the locks have keys and owner ids, which are secrets, and are many while some wait. */
export const SILENT_LOGGER: Logger = {
  logQuery: () => undefined,
  logQueryError: () => undefined,
  logQuerySlow: () => undefined,
  logSchemaBuild: () => undefined,
  logMigration: () => undefined,
  log: () => undefined,
};

/** Returns the application's logger without the statements of the locks. */
export function loggerOfOthers(logger: Logger): Logger {
  const current = (): Logger => (isUnlogged() ? SILENT_LOGGER : logger);
  return {
    logQuery: (...args) => current().logQuery(...args),
    logQueryError: (...args) => current().logQueryError(...args),
    logQuerySlow: (...args) => current().logQuerySlow(...args),
    logSchemaBuild: (...args) => current().logSchemaBuild(...args),
    logMigration: (...args) => current().logMigration(...args),
    log: (...args) => current().log(...args),
  };
}
