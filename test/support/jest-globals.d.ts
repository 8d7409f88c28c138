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

declare module 'expect' {
  interface Matchers<R extends void | Promise<void>> {
    /** As `toBeLessThan`, for milliseconds that have just passed: judging.ts says when it is not judged. */
    toTakeLessThan(limitMs: number): R;
  }
}
