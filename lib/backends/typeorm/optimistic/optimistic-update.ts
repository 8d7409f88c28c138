import type { EntityManager, EntityTarget, ObjectLiteral, UpdateQueryBuilder } from 'typeorm';
import { LockConfigurationError, OptimisticConflictError } from '../../../core/index.js';
import { isChangedRowError } from './conflict.js';

/** Values for the columns of a row. TypeORM 0.3.20 does not export this type. */
type Changes<Row extends ObjectLiteral> = Parameters<UpdateQueryBuilder<Row>['set']>[0];

/**
 * Runs `UPDATE … SET …, version = version + 1 WHERE id = … AND version = …`. The id and the version are those that
 * `row` was read with. TypeORM's `save()` counts the version up, too, but does not compare it. `row` itself stays as it
 * is: read it again before a second update.
 * @throws OptimisticConflictError when the row is gone or has another version. Inside `optimistic()` the work then runs
 *   again. An error with a `cause` comes from the database, and its transaction cannot go on.
 *   LockConfigurationError when the entity has no `@VersionColumn()`, or `row` was read without its id or version
 */
export async function updateVersioned<Row extends ObjectLiteral>(
  manager: EntityManager,
  entity: EntityTarget<Row>,
  row: Row,
  changes: Changes<Row>,
): Promise<void> {
  const metadata = manager.connection.getMetadata(entity);
  const { versionColumn, name } = metadata;
  if (!versionColumn) throw createEntityError(`${name} needs a column with @VersionColumn()`);
  const id = metadata.getEntityIdMap(row);
  const version: unknown = versionColumn.getEntityValue(row);
  if (!id || typeof version !== 'number')
    throw createEntityError(`the row of ${name} must be read with its id and version`);

  // TypeORM counts the version up only if `values` has none. Changes such as `{ ...row, stock }` have the old version.
  const values = { ...changes };
  Reflect.deleteProperty(values, versionColumn.propertyName);
  const update = manager.createQueryBuilder().update(entity).set(values);
  const createConflictError = (options?: { readonly cause: unknown }): OptimisticConflictError =>
    new OptimisticConflictError(`${name} ${JSON.stringify(id)} is no longer at version ${version}`, 1, options);
  const result = await update
    .where({ ...id, ...versionColumn.createValueMap(version) })
    .execute()
    .catch((cause: unknown) => {
      throw isChangedRowError(cause) ? createConflictError({ cause }) : cause;
    });
  if (result.affected !== 1) throw createConflictError();
}

function createEntityError(message: string): LockConfigurationError {
  return new LockConfigurationError(message, 'entity');
}
