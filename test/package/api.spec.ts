import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const SCRIPT = join(import.meta.dirname, '../../scripts/api.mjs');

describe('what the entry points export', () => {
  it('is what api/ says', () => {
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT, '--check'], {
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
