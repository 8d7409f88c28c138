import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { timeLimitOf } from '../support/machine.js';

it(
  'the adapters take what the types of each client are',
  () => {
    const root = join(import.meta.dirname, '../..');
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [compiler, '-p', 'test/orms'], { cwd: root, encoding: 'utf8' });
    expect(stdout).toBe('');
  },
  timeLimitOf(300_000),
);
