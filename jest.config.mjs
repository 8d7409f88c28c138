/** The specs of test/backends that LOCK_BACKENDS leaves out; `wantedOf` in describe-backend.ts says which tests of a spec. */
const FAMILIES = [
  ['etcd'],
  ['memcached'],
  ['memory'],
  ['redis'],
  ['redlock'],
  ['typeorm', 'sqlite', 'postgres', 'mariadb'],
  ['zookeeper'],
];
const wanted = (process.env.LOCK_BACKENDS ?? '').split(',').map((name) => name.split('-', 1)[0]);
const leftOut = wanted[0] === '' ? [] : FAMILIES.filter((names) => !names.some((name) => wanted.includes(name)));

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
    '^nestjs-distributed-lock/(core|testing|conformance)$': '<rootDir>/lib/$1/index.ts',
    '^nestjs-distributed-lock/(.+)$': '<rootDir>/lib/backends/$1/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  testPathIgnorePatterns: ['/node_modules/', ...leftOut.flat().map((name) => `<rootDir>/test/backends/${name}[/.-]`)],
  modulePathIgnorePatterns: ['<rootDir>/dist'],
  testMatch: ['<rootDir>/{bench,test}/**/*.spec.ts'],
  // Most of the time tests wait; more at once, and those with short TTLs would meet a machine that is busy with others.
  maxWorkers: 2,
  // A process for each file: an AsyncLocalStorage that one file leaves behind costs every promise of the next ones.
  workerIdleMemoryLimit: 0,
  testTimeout: 30_000,
};
