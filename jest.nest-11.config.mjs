import base from './jest.config.mjs';

/** The same specs of the Nest layer, on Nest 11. */
export default {
  ...base,
  moduleNameMapper: { ...base.moduleNameMapper, '^(@nestjs/.+)$': '<rootDir>/test/nest-11/node_modules/$1' },
  testMatch: ['<rootDir>/test/nest/**/*.spec.ts'],
};
