import nest11 from './jest.nest-11.config.mjs';

/** The same specs, on Nest 10. */
export default {
  ...nest11,
  moduleNameMapper: { ...nest11.moduleNameMapper, '^(@nestjs/.+)$': '<rootDir>/test/nest-10/node_modules/$1' },
  // Wildcards of Express 4 have numbers for names.
  testPathIgnorePatterns: [...nest11.testPathIgnorePatterns, '/wildcards.spec.ts'],
};
