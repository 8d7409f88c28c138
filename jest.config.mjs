import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { ENTRY_POINTS } from './scripts/entry-points.cjs';
import { listIgnored } from './scripts/lanes.mjs';
import { findMysql } from './scripts/mysql.mjs';
import { swcOptions } from './test/support/ts-sources.cjs';

const DATABASES = ['sqlite', 'postgres', 'mariadb', 'mysql'];
/** Folders whose backends are named after databases. */
const NAMED_OTHERWISE = { sql: DATABASES, typeorm: DATABASES };
// Workers have it from here.
process.env.LOCK_MYSQLD = findMysql();
const wantedNames = (process.env.LOCK_BACKENDS ?? '').split(',').filter((name) => name !== '');
const wanted = wantedNames.map((name) => name.split('-', 1)[0]);
const contracts = readdirSync(join(import.meta.dirname, 'test/backends'), { recursive: true }).flatMap(
  (file) => /(?<name>[^/]+)-contract\.spec\.ts$/u.exec(file)?.groups.name ?? [],
);
const unknown = wantedNames.find((name) => !contracts.some((one) => one === name || one.startsWith(`${name}-`)));
if (unknown !== undefined)
  throw new Error(`LOCK_BACKENDS names no backend "${unknown}"; there are ${contracts.toSorted().join(', ')}`);
/** The folders of test/backends that LOCK_BACKENDS leaves out; `wantedOf` in test/support says which tests of a spec. */
const leftOut = readdirSync(join(import.meta.dirname, 'lib/backends')).filter(
  (folder) => wanted.length > 0 && ![folder, ...(NAMED_OTHERWISE[folder] ?? [])].some((name) => wanted.includes(name)),
);

export default {
  rootDir: import.meta.dirname,
  cacheDirectory: join(import.meta.dirname, 'node_modules/.cache/jest'),
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': ['@swc/jest', swcOptions] },
  moduleNameMapper: {
    ...Object.fromEntries(
      Object.entries(ENTRY_POINTS).map(([path, file]) => [
        `^${join('nestjs-distributed-lock', path)}$`,
        `<rootDir>/${file}`,
      ]),
    ),
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  setupFilesAfterEnv: ['<rootDir>/test/support/judging.ts'],
  testPathIgnorePatterns: [...listIgnored(), ...leftOut.map((folder) => `<rootDir>/test/backends/${folder}/`)],
  modulePathIgnorePatterns: ['<rootDir>/dist'],
  // The packages of test/orms are not those of the project: jest.orms.config.mjs.
  testMatch: ['<rootDir>/bench/**/*.spec.ts', '<rootDir>/test/!(orms)/**/*.spec.ts'],
  // Most of the time tests wait; other steps run beside these.
  maxWorkers: availableParallelism() + 4,
  testSequencer: '<rootDir>/scripts/longest-first.mjs',
  // A process for each file: an AsyncLocalStorage that one file leaves behind costs every promise of the next ones.
  workerIdleMemoryLimit: 0,
  // The next process may still be starting when all is over; on a busy machine it ends late.
  workerGracefulExitTimeout: 10_000,
  // For tests that hang. On a machine that is slow, what a test waits for lasts up to twelve times as long.
  testTimeout: 300_000,
};
