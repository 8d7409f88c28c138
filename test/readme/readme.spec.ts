import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { RedisServer } from '../servers/redis-server.js';

const root = resolve(import.meta.dirname, '../..');
const directory = join(import.meta.dirname, 'examples');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const examples = [...readme.matchAll(/```ts\n(.*?)```/gsu)].map(([, text = ''], i) => ({
  name: `example-${i + 1}`,
  text,
}));

/** What an example prints; those that only declare things print nothing. */
const PRINTED: Record<string, string> = {
  'example-5': '42\ntrue true\n',
  'example-8': 'valid\nstale\n',
  'example-9': 'true\ntest could not acquire "other": the test backend is down\n',
  'example-10': 'test\nmemory\n',
};

describe('the examples in README.md', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    mkdirSync(directory, { recursive: true });
    for (const { name, text } of examples) writeFileSync(join(directory, `${name}.ts`), text);
    redis = await RedisServer.start();
  });
  afterAll(async () => {
    rmSync(directory, { recursive: true });
    await redis.stop();
  });

  it('compile', () => {
    const project = join(directory, 'tsconfig.json');
    writeFileSync(project, JSON.stringify({ extends: '../../../tsconfig.json', include: ['*.ts'] }));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', project], { cwd: root, encoding: 'utf8' });
    expect(stdout).toBe('');
  });

  it.each(examples)('run: $name', ({ name }) => {
    const child = spawnSync(
      process.execPath,
      ['--import', join(root, 'test/support/ts-register.mjs'), join(directory, `${name}.ts`)],
      { cwd: root, encoding: 'utf8', timeout: 20_000, env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url } },
    );
    expect(child.stderr).toBe('');
    expect(child.stdout).toBe(PRINTED[name] ?? '');
    expect(child.status).toBe(0);
  });
});
