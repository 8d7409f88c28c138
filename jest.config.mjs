export default {
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
          keepClassNames: true,
        },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  moduleNameMapper: {
    '^nestjs-distributed-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-distributed-lock/(core|testing)$': '<rootDir>/lib/$1/index.ts',
    '^nestjs-distributed-lock/(.+)$': '<rootDir>/lib/backends/$1/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist'],
  testMatch: ['<rootDir>/{lib,test,sample-app}/**/*.spec.ts'],
  // Most of the time tests wait; more at once, and those with short TTLs would meet a machine that is busy with others.
  maxWorkers: 2,
  // A process for each file: an AsyncLocalStorage that one file leaves behind costs every promise of the next ones.
  workerIdleMemoryLimit: 1,
  testTimeout: 30_000,
};
