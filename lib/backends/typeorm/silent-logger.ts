import type { Logger } from 'typeorm';
import { isUnlogged } from '../sql/connections/unlogged.js';

/**
 * Logger that drops the statements of the locks. These statements show keys and owner ids, which are secrets, and are
 * frequent while callers wait.
 */
export const SILENT_LOGGER: Logger = {
  logQuery: () => undefined,
  logQueryError: () => undefined,
  logQuerySlow: () => undefined,
  logSchemaBuild: () => undefined,
  logMigration: () => undefined,
  log: () => undefined,
};

export function hideLockStatements(logger: Logger): Logger {
  const getLogger = (): Logger => (isUnlogged() ? SILENT_LOGGER : logger);
  return {
    logQuery: (...args) => getLogger().logQuery(...args),
    logQueryError: (...args) => getLogger().logQueryError(...args),
    logQuerySlow: (...args) => getLogger().logQuerySlow(...args),
    logSchemaBuild: (...args) => getLogger().logSchemaBuild(...args),
    logMigration: (...args) => getLogger().logMigration(...args),
    log: (...args) => getLogger().log(...args),
  };
}
