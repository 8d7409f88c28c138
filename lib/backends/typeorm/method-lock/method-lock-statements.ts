import type { LeaseStatements } from '../sql-dialect.js';
import type { MethodLockDialect } from './method-lock-dialect.js';
import { assertStorable, type MethodLockTable } from './method-lock-table.js';

/** The statements of a lease in the table, for keys that it can keep. */
export function methodLockStatements(dialect: MethodLockDialect, table: MethodLockTable): LeaseStatements {
  const statements = dialect.statements(table);
  return {
    ...statements,
    async tryAcquire(query, name, lease) {
      // The first connection looks at the table when it is opened.
      if (!table.limits) await query('select 1', []);
      assertStorable(table, lease.key, lease.owner);
      return statements.tryAcquire(query, name, lease);
    },
  };
}
