import base from './jest.config.mjs';

/** The specs of the ORMs, whose packages are installed in test/orms only. */
export default {
  ...base,
  globalSetup: '<rootDir>/test/orms/generate-clients.mjs',
  testMatch: ['<rootDir>/test/orms/*.spec.ts'],
};
