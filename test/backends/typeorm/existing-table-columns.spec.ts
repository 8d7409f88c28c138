import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { ExistingTableWorld } from './existing-table-world.js';

describe('columns of a table of an older program', () => {
  const world = ExistingTableWorld.shared('sqlite');
  const columns = { key: 'method_name', owner: 'client_id' };

  it.each([
    [{ columns: { owner: 'client_id' } }, 'columns.key must be a plain identifier'],
    [{ columns: { ...columns, key: 'a"; drop table method_lock; --' } }, 'columns.key must be a plain identifier'],
    [{ columns: { ...columns, expires: 'until' } }, 'columns has no expires; it has key, owner, updatedAt, expiresAt'],
    [{ columns: { ...columns, token: 'client_ID' } }, 'columns must differ from each other'],
    [{ columns, tableName: undefined }, 'give its tableName too'],
    [{ columns, abandonedAfterMs: 1_000 }, 'columns.updatedAt, which is missing'],
    [{ columns, abandonedAfterMs: 0 }, 'abandonedAfterMs must be a number above 0'],
    [{ columns: undefined, abandonedAfterMs: 1_000 }, 'give its columns'],
    [{ columns, strategy: 'session' }, 'columns is no option of strategy session'],
  ])('that can never work are refused where they are given: %j', (options, why) => {
    const make = (): unknown => world.backend(options as object);
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(why);
  });
});
