/** Draws mutants from the lines that mended something, and finds the commits that can be reverted. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

import { git, resetClone } from './git.mjs';
import { findMutations, isMutable } from './mutations.mjs';
import { findReverts } from './reverts.mjs';

/** First words of the subjects of commits that mend something. */
const VERBS =
  'Answer|Bear|Bound|Correct|Drop|End|Fix|Forget|Free|Guard|Keep|Let|Limit|Lose|Mend|Never|Refuse|Reject|Release|Stop|Survive|Tell|Wake';
const MENDING = new RegExp(`^(?:${VERBS}) `, 'u');

/** Draws once: the state keeps it. */
export function draw(state, { count, seed }) {
  if (state.data.mutants) return true;
  const commit = git(['rev-parse', 'HEAD']).trim();
  const clone = state.cloneNamed('plain');
  resetClone(clone, commit);
  const files = git(['ls-files', 'lib'], { cwd: clone }).trim().split('\n').filter(isMutable);
  const mutations = shuffle(
    files.flatMap((file) => findMended(clone, file)),
    seed,
  );
  const lines = new Set();
  const isFirstOfLine = ({ file, line }) => lines.size < lines.add(`${file}:${line}`).size;
  const mutants = mutations.filter(isFirstOfLine).slice(0, count);
  const reverts = findReverts(clone, commit);
  Object.assign(state.data, { seed, commit, candidates: mutations.length });
  state.data.mutants = mutants.map((mutant, index) => ({ id: index + 1, ...mutant }));
  state.data.reverts = reverts.map((revert, index) => ({ id: mutants.length + index + 1, ...revert }));
  state.save();
  console.log(`${mutants.length} mutants of ${mutations.length} on ${lines.size} lines, ${reverts.length} reverts`);
  return true;
}

/** Returns the mutations on lines whose last commit mends something. */
function findMended(clone, file) {
  const subjects = git(['blame', '--line-porcelain', '-w', '--', file], { cwd: clone }).match(/^summary .*$/gmu) ?? [];
  if (!subjects.some(mends)) return [];
  const source = ts.createSourceFile(file, readFileSync(join(clone, file), 'utf8'), ts.ScriptTarget.Latest, true);
  return findMutations(source)
    .filter(({ line }) => mends(subjects[line - 1]))
    .map((mutation) => ({ file, ...mutation }));
}

function mends(summary) {
  return MENDING.test(summary.slice('summary '.length));
}

/** Shuffles by a seed. Numbers are those of mulberry32. */
function shuffle(items, seed) {
  let word = seed;
  const next = () => {
    word = (word + 0x6d2b79f5) | 0;
    let mixed = Math.imul(word ^ (word >>> 15), 1 | word);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return items
    .map((item) => [next(), item])
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);
}
