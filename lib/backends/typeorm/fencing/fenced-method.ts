import { DataSource } from 'typeorm';
import { LockConfigurationError } from '../../../core/index.js';
import { assertLegacyDecorator, isMethod, getMethodLabel } from '../../../decorators/declaration.js';
import { addLockedStep, type LockedStep, createUnlockedStepError } from '../../../decorators/locked-step.js';
import { wrapMethod } from '../../../decorators/wrapped-method.js';
import { fenced, type FencedOptions } from './fenced.js';
import { checkFenceTable, DEFAULT_FENCE_TABLE } from '../../sql/tables/lock-table.js';
import type { PromiseMethodDecorator } from '../optimistic/promise-method.js';
import { createQuery } from '../../sql/connections/query.js';
import { getTableContext } from '../databases.js';
import { assertTableName, quoteTable } from '../../sql/tables/table-name.js';

export interface FencedMethodOptions extends FencedOptions {
  /** Injection token of the data source, such as `getDataSourceToken('ledger')`. @default DataSource */
  dataSource?: LockedStep['needs'];
}

/**
 * Runs a `@Locked` method in a transaction, by `fenced()` with the lock of the call. A former holder cannot commit the
 * transaction once a newer holder has raised the fence. The transaction begins after the lock is acquired and commits
 * before the lock is released, whichever decorator is written first. The method writes through `fencedManager()`.
 *
 * `resource` is a template like that of `@Locked`, with the same names and escaping. The lock must have one key: the
 * tokens of several cannot be compared. The fence's row stays locked until the method ends, so keep slow work out
 * of the method.
 * @throws LockConfigurationError at decoration: a static method, a second `@Fenced`. At the application's start: no
 *   `@Locked` beside it, several keys, a resource that can never be resolved, no data source. At a call: the same
 *   errors, where the start could not detect them
 */
export function Fenced(resource: string, options: FencedMethodOptions = {}): PromiseMethodDecorator {
  const { dataSource = DataSource, tableName = DEFAULT_FENCE_TABLE } = options;
  assertTableName(tableName);
  return (target: object, name: string | symbol, descriptor?: PropertyDescriptor) => {
    assertLegacyDecorator('@Fenced', name);
    const declaration = { target, name };
    const label = getMethodLabel(declaration);
    const method: unknown = descriptor?.value;
    if (typeof target === 'function' || !descriptor || !isMethod(method)) {
      throw new LockConfigurationError(`@Fenced belongs on a method of instances, which ${label} is not`, 'method');
    }
    const hasLockedDecorator = addLockedStep(declaration, {
      decorator: '@Fenced',
      resource,
      needs: dataSource,
      advice: `DataSource of @Fenced ${label}: import TypeOrmModule.forRoot(…), or name its provider, @Fenced('…', { dataSource: token })`,
      start: (provider) => assertFenceTable(asDataSource(provider, label), tableName),
      run: (work, { resource: resolvedResource, lock, provider }) => {
        const { manager } = asDataSource(provider, label);
        const runAndAssertHeld = async (): ReturnType<typeof work> => {
          const result = await work();
          // Throws before the commit if the lock is lost, so that the transaction is rolled back.
          lock.throwIfLost();
          return result;
        };
        return fenced(manager, resolvedResource, lock, runAndAssertHeld, { tableName });
      },
    });
    descriptor.value = wrapMethod(method, function (this: unknown, ...args: never[]) {
      return hasLockedDecorator()
        ? method.apply(this, args)
        : Promise.reject(createUnlockedStepError('@Fenced', declaration));
    });
  };
}

async function assertFenceTable(dataSource: DataSource, tableName: string): Promise<void> {
  if (!dataSource.isInitialized) return;
  const tableContext = getTableContext(dataSource.options);
  await checkFenceTable(createQuery(dataSource), tableContext, quoteTable(tableContext, tableName));
}

function asDataSource(value: unknown, label: string): DataSource {
  if (value instanceof DataSource) return value;
  throw new LockConfigurationError(`what @Fenced ${label} was given as dataSource is no DataSource`, 'dataSource');
}
