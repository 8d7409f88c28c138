import { type BackendFactory, LockConfigurationError, openBackend } from 'nestjs-distributed-lock/core';
import { typeorm, type TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';

const dataSource = { options: { type: 'postgres', url: 'postgres://localhost:1/none' } };

it.each([
  [{}, undefined],
  [{ pollMs: 5, patienceMs: 0, reapIdleAfterMs: Infinity }, undefined],
  [{ strategy: 'row', poolSize: 1, connectTimeoutMs: 0.5 }, undefined],
  [{ strategy: 'session', sessionTtlMs: 1, pollMs: 5 }, undefined],
  [{ dataSource: {} }, 'dataSource must be a TypeORM DataSource'],
  [{ strategy: 'rows' }, 'strategy must be one of lease, row, session; it was "rows"'],
  [{ poolSize: 5 }, 'poolSize is no option of strategy lease'],
  [{ requestTimeoutMs: 0 }, 'requestTimeoutMs must be a number above 0; it was 0'],
  [{ requestTimeoutMs: '5' }, 'requestTimeoutMs must be a number above 0; it was "5"'],
  [{ connectTimeoutMs: Number.NaN }, 'connectTimeoutMs must be a number above 0; it was NaN'],
  [{ pollMs: -1 }, 'pollMs must be a number above 0; it was -1'],
  [{ patienceMs: -1 }, 'patienceMs must be a number of 0 or more; it was -1'],
  [{ reapIdleAfterMs: 0 }, 'reapIdleAfterMs must be a number above 0; it was 0'],
  [{ strategy: 'row', poolSize: 1.5 }, 'poolSize must be a number above 0, and whole; it was 1.5'],
  [{ strategy: 'session', sessionTtlMs: 2 ** 31 }, 'sessionTtlMs must be a number from 1 to 2147483647'],
  [{ strategy: 'session', pollMs: null }, 'pollMs must be a number above 0; it was null'],
  [{ strategy: 'row', tableName: 'app.locks' }, undefined],
  [{ strategy: 'row', tableName: 'a.b.c' }, 'tableName must be a plain identifier'],
  [{ strategy: 'row', tableName: 'a."b' }, 'tableName must be a plain identifier'],
])('typeorm(%j): %s', (options, why) => {
  const make = (): BackendFactory => typeorm(Object.assign({ dataSource }, options) as TypeOrmOptions);
  if (why === undefined) {
    expect(openBackend(make())).toMatchObject({ name: expect.stringContaining('typeorm:postgres') });
  } else {
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(why);
  }
});
