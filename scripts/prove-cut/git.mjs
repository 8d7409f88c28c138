import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { root } from '../execute.mjs';

/** Runs git in the repository, or in `cwd`, and returns its output. */
export function git(args, { cwd = root, ...options } = {}) {
  return execFileSync('git', args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: 'pipe', ...options });
}

/** Whether git does this without an error. */
export function succeeds(args, options) {
  try {
    git(args, options);
    return true;
  } catch {
    return false;
  }
}

/** Makes a scratch clone of a commit, or resets the one that is there. It shares the installed packages. */
export function resetClone(clone, commit) {
  if (!succeeds(['cat-file', '-e', commit], { cwd: clone })) {
    rmSync(clone, { recursive: true, force: true });
    git(['clone', '--quiet', '--shared', '--no-checkout', root, clone]);
  }
  git(['checkout', '--quiet', '--force', '--detach', commit], { cwd: clone });
  git(['clean', '--quiet', '-fdx', 'lib'], { cwd: clone });
  if (!existsSync(join(clone, 'node_modules'))) symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
}
