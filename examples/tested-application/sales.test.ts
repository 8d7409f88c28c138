import { Test, type TestingModule } from '@nestjs/testing';
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { DISTRIBUTED_LOCK_OPTIONS, LockBackendError, LockTimeoutError } from 'nestjs-distributed-lock';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { AppModule, Sales } from './sales.js';

// The whole application, with locks that a test controls. Redis is not asked.
let clock: ManualClock;
let backend: TestLockBackend;
let app: TestingModule;
let sales: Sales;

beforeEach(async () => {
  clock = new ManualClock();
  backend = new TestLockBackend({ clock });
  app = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(DISTRIBUTED_LOCK_OPTIONS)
    .useValue({ backend, clock, logger: false })
    .compile();
  sales = app.get(Sales);
});
afterEach(() => app.close());

test('two buyers of the last piece: one gets it', async () => {
  const answers = await Promise.all([sales.buy('42'), sales.buy('42')]);
  assert.deepEqual(answers, ['bought 42', '42 is sold out']);
});

test('a buyer waits for five seconds, and then hears that the sale is busy', async () => {
  await backend.occupy('sale_42');
  const refused = assert.rejects(sales.buy('42'), LockTimeoutError);
  await clock.advance(5_000);
  await refused;
});

test('without locks nothing is sold', async () => {
  backend.breakDown();
  const refused = assert.rejects(sales.buy('42'), LockBackendError);
  await clock.advance(5_000);
  await refused;
  assert.equal(sales.stock, 1);
});
