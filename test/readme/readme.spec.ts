import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
import { atLeastMs, RedisServer } from '../support/index.js';
import { read, ROOT as root, USER_PAGES } from './pages.js';

const directory = join(import.meta.dirname, 'examples');
const examples = USER_PAGES.flatMap(examplesOf);

const promises = leaseStorePromises({
  connect: () => Promise.reject(new Error('these are counted only')),
  shortTtlMs: 1,
  revoke: () => undefined,
  freeze: () => () => undefined,
});

/** The output of an example; those that only declare things print nothing. */
const PRINTED: Record<string, unknown> = {
  'docs/getting-started/example-5': '42\n',
  'docs/handles-and-loss/example-1': '42\ntrue true\n',
  'docs/leader-election/example-3': 'leads: true, true\ntrue\n',
  'docs/observing/example-1': 'acquired by backend, acquired by re-entry\n',
  'docs/operating/example-1': 'billing true 0\ninvoice:42\nundefined\n',
  'docs/sequencers-and-lock-delay/example-1': 'valid\nstale\n',
  'docs/shutdown/example-2': 'done\n',
  'docs/testing/example-1': 'true\ntest could not acquire "other": the test backend is down\n',
  'docs/testing/example-2': 'bought a1\n',
  'docs/testing/example-3': 'test\nmemory\n',
  'docs/testing/example-4': 'true\nsold 7\n',
  'docs/testing/example-5': 'held\nlost\n',
  'docs/writing-a-backend/map-store.test': expect.stringMatching(
    new RegExp(`pass ${promises.length}\\n[^]*fail 0\\n[^]*skipped 0\\n`, 'u'),
  ),
};

describe('the examples in README.md and docs', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    for (const { name, text } of examples) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      // On a slow machine short leases end early.
      const inTime = text.replace(/(?<=shortTtlMs: )\d+/u, (ms) => String(atLeastMs(Number(ms))));
      writeFileSync(join(directory, `${name}.ts`), inTime);
    }
    redis = await RedisServer.start();
  });
  afterAll(async () => {
    rmSync(directory, { recursive: true });
    await redis.stop();
  });

  // The compiler needs half a minute where it shares the machine.
  it('compile', () => {
    const project = join(directory, 'tsconfig.json');
    const include = ['**/*.ts', '../../../lib/**/*.d.ts'];
    writeFileSync(project, JSON.stringify({ extends: '../../../tsconfig.json', include, exclude: [] }));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', project], { cwd: root, encoding: 'utf8' });
    expect(stdout).toBe('');
  });

  it.each(examples.filter(({ name }) => name in PRINTED))(
    'run: $name',
    ({ name }) => expect(run([name])).toEqual({ stdout: PRINTED[name], stderr: '', status: 0 }),
    60_000,
  );

  it('run, and print nothing: all others, in one process', () => {
    const names = examples.map(({ name }) => name).filter((name) => !(name in PRINTED));
    expect(run(names)).toEqual({ stdout: '', stderr: '', status: 0 });
  });

  /** One after the other, in a process that has to end by itself. */
  function run(names: readonly string[]): { stdout: string; stderr: string; status: number | null } {
    const loader = join(root, 'test/support/ts-register.mjs');
    const files = names.map((name) => pathToFileURL(join(directory, `${name}.ts`)).href);
    const imports = files.map((file) => `await import(${JSON.stringify(file)});`).join('\n');
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ['--import', loader, '--input-type=module', '--eval', imports],
      {
        cwd: root,
        encoding: 'utf8',
        timeout: 100_000,
        env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url },
      },
    );
    return { stdout, stderr, status };
  }

  it('name a store that is as short as it says', () => {
    const store = examples.find(({ name }) => name === 'docs/writing-a-backend/map-store');
    expect(store?.text.split('\n').length).toBeLessThanOrEqual(60);
  });
});

/** Under the name in its first line, such as `// map-store.ts`, for the other examples of its page to import. */
function examplesOf(page: string): { readonly name: string; readonly text: string }[] {
  const blocks = read(page).matchAll(/```ts\n(.*?)```/gsu);
  return [...blocks].map(([, text = ''], i) => {
    const own = /^\/\/ ([\w.-]+)\.ts\n/u.exec(text)?.[1];
    return { name: `${page.slice(0, -'.md'.length)}/${own ?? `example-${i + 1}`}`, text };
  });
}
