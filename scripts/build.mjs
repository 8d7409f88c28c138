/** Builds dist: ES modules for `import`, CommonJS for `require`, each with its declarations. */
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath, exit } from 'node:process';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const tsc = join(root, 'node_modules/typescript/bin/tsc');

rmSync(dist, { recursive: true, force: true });
// Declarations are the same for both. Checked once, the code need not be checked again.
emit('tsconfig.build.json', '--emitDeclarationOnly');
cpSync(join(dist, 'esm'), join(dist, 'cjs'), { recursive: true });
for (const [config, folder, type] of [
  ['tsconfig.build.json', 'esm', 'module'],
  ['tsconfig.build-cjs.json', 'cjs', 'commonjs'],
]) {
  // Comments are for readers of declarations: the code does without them, and is a third smaller.
  emit(config, '--noCheck', '--declaration', 'false', '--removeComments');
  writeFileSync(join(dist, folder, 'package.json'), `${JSON.stringify({ type })}\n`);
}

function emit(config, ...options) {
  const { status } = spawnSync(execPath, [tsc, '-p', join(root, config), ...options], { stdio: 'inherit' });
  if (status !== 0) exit(status ?? 1);
}
