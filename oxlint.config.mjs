import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Rooms of lib/core, each with the rooms that it may import: ARCHITECTURE.md draws them. */
const CORE = {
  time: [],
  contract: ['time'],
  kit: ['time', 'contract'],
  events: ['time', 'contract'],
  line: ['time', 'contract'],
  options: ['time', 'contract', 'kit', 'events'],
};
CORE.leasing = CORE.turns = [...CORE.options, 'options'];
CORE.holding = [...CORE.leasing, 'leasing', 'turns'];
CORE.looking = CORE.ordering = CORE['single-flight'] = [...CORE.holding, 'holding'];
CORE.acquiring = [...CORE.ordering, 'ordering'];
CORE.several = [...CORE.acquiring, 'acquiring'];
CORE.leading = [...CORE.several, 'looking'];

/** Rooms of lib/nest. Files beside the rooms know none of them. */
const NEST = { requests: [], lifecycle: [], sequencer: [] };
NEST.keys = NEST.results = ['requests'];
NEST.locked = ['requests', 'lifecycle', 'keys', 'results'];
NEST.leads = [...NEST.locked, 'locked'];
NEST.module = [...NEST.leads, 'leads'];

/** Client libraries, each with the folders of lib/backends that may import it. */
const CLIENTS = {
  ioredis: ['redis'],
  // As a pattern the name also matches the folder.
  redis: ['redis', 'redlock'],
  'node-zookeeper-client': ['zookeeper'],
  typeorm: ['typeorm'],
  pg: ['postgres'],
  mysql2: ['mysql'],
};

/** Backends that use the files of another one. */
const BUILT_ON = { redlock: ['redis'], typeorm: ['sql'], postgres: ['sql'], mysql: ['sql'], sqlite: ['sql'] };

const BUILT_ON_SQL = ['sql', 'postgres', 'mysql', 'sqlite'];

const BACKENDS = readdirSync(join(import.meta.dirname, 'lib/backends'));

const NO_NEST = { group: ['@nestjs/*', '**/nest/**'], message: 'The order is nest -> core <- backends.' };
const CORE_BY_ITS_DOOR = {
  group: ['**/core/**', '!**/core/index.js'],
  message: 'The core is known by its index.js only.',
};
const NO_BACKEND = {
  group: [...Object.keys(CLIENTS).flatMap((client) => [client, `${client}/**`]), '**/backends/**'],
  message: 'The order is nest -> core <- backends. A client library belongs to its backend.',
};
const CORE_KNOWS_NOTHING = [
  NO_NEST,
  NO_BACKEND,
  { group: ['**/decorators/**'], message: 'The core knows no decorator.' },
];

/** Forbids imports in some files. A later call wins over an earlier one. */
function forbid(files, patterns) {
  return { files, rules: { 'eslint/no-restricted-imports': ['error', { patterns }] } };
}

/** Keeps the order of the rooms in a folder. */
function orderRooms(folder, rooms, others) {
  return Object.entries(rooms).map(([room, below]) => {
    const siblings = Object.keys(rooms).filter((other) => other !== room && !below.includes(other));
    const group = siblings.map((sibling) => `../${sibling}/**`);
    const message = `${folder}/${room} may import these rooms only: ${below.join(', ') || 'none'}.`;
    return forbid([`${folder}/${room}/**`], [...others, { group, message }]);
  });
}

function keepBackendsApart(backend) {
  const mayUse = [backend, ...(BUILT_ON[backend] ?? [])];
  // The rooms of lib/backends/sql have the names of databases, as the backends for these have.
  const allowed = backend === 'sql' ? BUILT_ON_SQL : mayUse;
  const others = BACKENDS.filter((other) => !allowed.includes(other)).map((other) => `**/${other}/**`);
  if (backend !== 'sql' && mayUse.includes('sql')) others.push('!**/sql/**');
  const clients = Object.keys(CLIENTS).filter((client) => !CLIENTS[client].includes(backend));
  const group = [...others, ...clients.flatMap((client) => [client, `${client}/**`])];
  const message = `lib/backends/${backend} knows no other backend, and no client library of one.`;
  return forbid([`lib/backends/${backend}/**`], [NO_NEST, CORE_BY_ITS_DOOR, { group, message }]);
}

/** Names that test/support/jest-globals.d.ts declares. */
const JEST_GLOBALS = Object.fromEntries(
  ['afterAll', 'afterEach', 'beforeAll', 'beforeEach', 'describe', 'expect', 'it'].map((name) => [name, 'readonly']),
);

const WITHOUT_BACKENDS = ['inspector', 'terminus', 'metrics', 'opentelemetry'].map((room) => `lib/${room}/**`);

export default {
  plugins: ['typescript', 'import', 'promise', 'node', 'unicorn'],
  categories: { correctness: 'error', suspicious: 'error' },
  env: { node: true, es2024: true },
  ignorePatterns: [
    'dist',
    'node_modules',
    'coverage',
    'site/.vitepress/config.ts',
    'site/.vitepress/theme',
    'test/e2e/nest-*',
    'test/orms',
  ],
  rules: {
    'typescript/no-explicit-any': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    'typescript/return-await': ['error', 'error-handling-correctness-only'],
    'typescript/switch-exhaustiveness-check': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/no-extraneous-class': ['error', { allowWithDecorator: true }],
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'eslint/no-console': 'error',
    'eslint/no-underscore-dangle': 'off',
    'eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    'unicorn/consistent-function-scoping': 'off',
    'eslint/no-undef': 'error',
    'import/no-unassigned-import': 'off',
    'import/no-named-as-default-member': 'off',
  },
  overrides: [
    forbid(['lib/core/**'], CORE_KNOWS_NOTHING),
    ...orderRooms('lib/core', CORE, CORE_KNOWS_NOTHING),
    forbid(['lib/conformance/**', 'lib/nestjs-locks/**'], [NO_NEST, NO_BACKEND, CORE_BY_ITS_DOOR]),
    forbid(['lib/nest/**', ...WITHOUT_BACKENDS, 'lib/index.ts'], [NO_BACKEND, CORE_BY_ITS_DOOR]),
    ...orderRooms('lib/nest', NEST, [NO_BACKEND, CORE_BY_ITS_DOOR]),
    ...BACKENDS.map(keepBackendsApart),
    {
      files: ['bench/**', 'examples/**', 'sample-app/**', 'servers/**', 'site/**', 'stampede/**', 'test/**'],
      rules: {
        'typescript/no-unsafe-type-assertion': 'off',
        'typescript/no-extraneous-class': ['error', { allowWithDecorator: true }],
      },
    },
    { files: ['bench/**', 'test/**'], globals: JEST_GLOBALS },
    {
      files: ['examples/**/*.test.ts'],
      rules: {
        'typescript/no-floating-promises': [
          'error',
          { allowForKnownSafeCalls: [{ from: 'package', name: ['it', 'test'], package: 'node:test' }] },
        ],
      },
    },
    { files: ['lib/inspector/page/**', 'sample-app/public/**'], env: { browser: true } },
    { files: ['examples/**', 'scripts/**', 'stampede/**'], rules: { 'eslint/no-console': 'off' } },
  ],
};
