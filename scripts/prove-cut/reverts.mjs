/** Finds the commits whose changes of lib can be reverted alone, and the functions that a revert touches. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import ts from 'typescript';

import { root } from '../execute.mjs';
import { git, resetClone, succeeds } from './git.mjs';
import { isMutable } from './mutations.mjs';

const TYPE_CHECK = ['-p', 'tsconfig.build.json', '--noEmit', '--incremental', '--tsBuildInfoFile', 'lib.tsbuildinfo'];
/** How many of the last commits to lib are tried. */
const COMMITS = 200;

/** Returns the reverts that apply, change the program, and leave its types right. */
export function findReverts(clone, commit) {
  const commits = git(['log', `-${COMMITS}`, '--no-merges', '--format=%H %s', commit, '--', 'lib'])
    .trim()
    .split('\n');
  return commits.flatMap((line) => {
    const [hash, subject] = [line.slice(0, 40), line.slice(41)];
    const patch = git(['diff', '--binary', `${hash}^`, hash, '--', 'lib']);
    const points = applyReversed(clone, patch) ? findPoints(clone) : [];
    const isKept = points.length > 0 && hasRightTypes(clone);
    resetClone(clone, commit);
    return isKept ? [{ kind: 'revert', hash, subject, patch, points }] : [];
  });
}

/** Reverts the changes of a patch in a clone, as `git revert` merges them. Returns whether there was no conflict. */
export function applyReversed(clone, patch) {
  return succeeds(['apply', '--reverse', '--3way'], { cwd: clone, input: patch });
}

function hasRightTypes(clone) {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  return spawnSync(execPath, [tsc, ...TYPE_CHECK], { cwd: clone }).status === 0;
}

/** Returns a point at the beginning of each function that differs from the commit, or of the file where none does. */
function findPoints(clone) {
  const files = git(['diff', 'HEAD', '--name-only', '--diff-filter=MD', '--', 'lib'], { cwd: clone })
    .trim()
    .split('\n');
  return files.filter(isMutable).flatMap((file) => pointsIn(clone, file));
}

function pointsIn(clone, file) {
  const text = git(['show', `HEAD:${file}`], { cwd: clone });
  const now = existsSync(join(clone, file)) ? readFileSync(join(clone, file), 'utf8') : '';
  if (compiled(now) === compiled(text)) return [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const hunks = git(['diff', 'HEAD', '-U0', '--', file], { cwd: clone }).matchAll(/^@@ -(\d+)(?:,(\d+))?/gmu);
  const lines = Array.from(hunks, ([, first, count = '1']) =>
    Array.from({ length: Math.max(1, Number(count)) }, (_, index) => Number(first) + index),
  ).flat();
  const offsets = new Set(lines.map((line) => offsetFor(source, Math.max(1, line))));
  offsets.delete(undefined);
  return Array.from(offsets, (offset) => ({ file, offset }));
}

/** Returns the code of a source without its types and comments. */
function compiled(text) {
  const compilerOptions = { target: ts.ScriptTarget.ESNext, removeComments: true };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

/** Returns where the innermost function around a line begins: 0 outside of all, `undefined` for lines without code. */
function offsetFor(source, line) {
  const lineStart = source.getPositionOfLineAndCharacter(line - 1, 0);
  const [indent, code] = /^(\s*)(.*)$/mu.exec(source.text.slice(lineStart)).slice(1);
  if (code === '' || /^(?:\/\/|\/?\*|import |export .* from )/u.test(code)) return undefined;
  const at = lineStart + indent.length;
  let offset = 0;
  const visit = (node) => {
    if (at < node.getStart(source) || at >= node.end) return;
    if (ts.isFunctionLike(node) && node.body && ts.isBlock(node.body)) offset = node.body.getStart(source) + 1;
    ts.forEachChild(node, visit);
  };
  visit(source);
  return offset;
}
