import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
import { RedisServer } from '../servers/redis-server.js';

const root = resolve(import.meta.dirname, '../..');
const directory = join(import.meta.dirname, 'examples');
const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
const pages = ['README.md', ...docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
const examples = pages.flatMap(examplesOf);

const promises = leaseStorePromises({
  connect: () => Promise.reject(new Error('these are counted only')),
  shortTtlMs: 1,
  revoke: () => undefined,
  freeze: () => () => undefined,
});

/** What an example prints; those that only declare things print nothing. */
const PRINTED: Record<string, unknown> = {
  'README/example-5': '42\ntrue true\n',
  'README/example-8': 'valid\nstale\n',
  'README/example-9': 'true\ntest could not acquire "other": the test backend is down\n',
  'README/example-10': 'test\nmemory\n',
  'docs/writing-a-backend/map-store.test': expect.stringMatching(
    new RegExp(`pass ${promises.length}\\n[^]*fail 0\\n[^]*skipped 0\\n`, 'u'),
  ),
};

describe('the examples in README.md and docs', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    for (const { name, text } of examples) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, `${name}.ts`), text);
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
    writeFileSync(project, JSON.stringify({ extends: '../../../tsconfig.json', include }));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', project], { cwd: root, encoding: 'utf8' });
    expect(stdout).toBe('');
  }, 120_000);

  it.each(examples)(
    'run: $name',
    ({ name }) => {
      const loader = join(root, 'test/support/ts-register.mjs');
      const child = spawnSync(process.execPath, ['--import', loader, join(directory, `${name}.ts`)], {
        cwd: root,
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url },
      });
      expect(child.stderr).toBe('');
      expect(child.stdout).toEqual(PRINTED[name] ?? '');
      expect(child.status).toBe(0);
    },
    60_000,
  );

  it('name a store that is as short as it says', () => {
    const store = examples.find(({ name }) => name === 'docs/writing-a-backend/map-store');
    expect(store?.text.split('\n').length).toBeLessThanOrEqual(60);
  });
});

/** Under the name in its first line, such as `// map-store.ts`, for the other examples of its page to import. */
function examplesOf(page: string): { readonly name: string; readonly text: string }[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/```ts\n(.*?)```/gsu);
  return [...blocks].map(([, text = ''], i) => {
    const own = /^\/\/ ([\w.-]+)\.ts\n/u.exec(text)?.[1];
    return { name: `${page.slice(0, -'.md'.length)}/${own ?? `example-${i + 1}`}`, text };
  });
}
