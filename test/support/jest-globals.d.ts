import type * as jest from '@jest/globals';

declare global {
  const afterAll: typeof jest.afterAll;
  const afterEach: typeof jest.afterEach;
  const beforeAll: typeof jest.beforeAll;
  const beforeEach: typeof jest.beforeEach;
  const describe: typeof jest.describe;
  const expect: typeof jest.expect;
  const it: typeof jest.it;
}
