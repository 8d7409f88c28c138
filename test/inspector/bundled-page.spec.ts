import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const SCRIPT = join(import.meta.dirname, '../../scripts/page.mjs');

it('the page that is checked in is what its sources say', () => {
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, '--check'], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
