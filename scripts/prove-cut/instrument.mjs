/** Puts all mutants into one copy of the sources: an environment variable says which one is on. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { resetClone } from './git.mjs';

/** Resets a clone, and instruments its sources with the mutants, and with a point for each function that a revert touches. */
export function instrumentClone(clone, { commit, mutants, reverts }) {
  resetClone(clone, commit);
  const points = reverts.flatMap((revert) => revert.points.map((point) => ({ id: revert.id, ...point })));
  const changes = [...mutants, ...points];
  for (const name of new Set(changes.map(({ file }) => file))) {
    const path = join(clone, name);
    const code = instrument(
      readFileSync(path, 'utf8'),
      changes.filter(({ file }) => file === name),
    );
    writeFileSync(path, code);
  }
}

function instrument(text, changes) {
  const [shebang] = /^(?:#!.*\n)?/u.exec(text);
  // Narrowing of types ends at a condition with a mutant.
  const prologue = `// @ts-nocheck\nglobalThis.__mutant ??= (${makeMutant.toString()})();\n`;
  const insertions = [{ at: shebang.length, rank: -Infinity, code: prologue }, ...changes.flatMap(insertionsFor)];
  let done = 0;
  let code = '';
  for (const insertion of insertions.toSorted((a, b) => a.at - b.at || a.rank - b.rank)) {
    code += text.slice(done, insertion.at) + insertion.code;
    done = insertion.at;
  }
  return code + text.slice(done);
}

/** Returns what to insert where. At one place, inner code ends first, and outer code begins first. */
function insertionsFor({ id, kind, start, end, after, offset }) {
  if (offset !== undefined) return [{ at: offset, rank: 0, code: `__mutant(${id});` }];
  const [opening, closing] =
    kind === 'statement' ? [`{ if (!__mutant(${id})) `, ' }'] : [`(__mutant(${id}) ? ${after} : (`, '))'];
  return [
    { at: start, rank: 1 / (end - start + 1) + 1, code: opening },
    { at: end, rank: -1 / (end - start + 1) - 1, code: closing },
  ];
}

/**
 * Makes the function that tells whether a mutant is on. Its text is put into each source: these run in jest, as ES
 * modules and as CommonJS. Where LOCK_MUTANT_RECORD names a file, that gets the mutants that were reached, and none is on.
 */
function makeMutant() {
  const { LOCK_MUTANT: on, LOCK_MUTANT_RECORD: file } = process.env;
  if (!file) return (id) => String(id) === on;
  const { appendFileSync } = process.getBuiltinModule('node:fs');
  const reached = new Set();
  return (id) => {
    if (!reached.has(id)) appendFileSync(file, `${id}\n`);
    reached.add(id);
    return false;
  };
}
