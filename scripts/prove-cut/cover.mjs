/** Runs each spec once without a mutant, and records which changes it reaches, how long it takes, and whether it passes. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { instrumentClone } from './instrument.mjs';
import { listSpecs, runSpecs } from './run-specs.mjs';

/** Specs after which the state is written. */
const CHUNK = 48;
/** Specs that test what is built from the sources, which is another copy of them. */
const BUILT = /^test\/package\//u;
/** Specs that the quick tier leaves out, or of which it leaves out tests. */
const ONLY_FULL = /\.long\.spec\.ts$|-(?:contract|faults)\.|^test\/(?:core|simulation)\//u;

/** Covers a tier. Returns whether it is all covered. */
export async function cover(state, tier, { workers, isOver }) {
  const covered = state.data.cover[tier];
  const clone = state.cloneNamed('instrumented');
  instrumentClone(clone, state.data);
  const specs = listSpecs(clone, tier).filter(
    (spec) => !BUILT.test(spec) && (tier === 'quick' || ONLY_FULL.test(spec)),
  );
  const records = join(state.directory, 'records');
  for (let left = specs; ;) {
    left = left.filter((spec) => !covered[spec]);
    if (left.length === 0 || isOver()) return left.length === 0;
    rmSync(records, { recursive: true, force: true });
    mkdirSync(records);
    const chunk = left.slice(0, CHUNK);
    const variables = { PROVE_CUT_RECORDS: records };
    const { results } = await runSpecs({ clone, specs: chunk, tier, variables, workers, directory: state.directory });
    for (const spec of chunk) covered[spec] = { ms: 0, failed: ['did not end'], ids: readRecord(records, spec) };
    for (const { spec, ms, failed } of results) Object.assign(covered[spec], { ms, failed });
    state.save();
    console.log(`${tier}: ${left.length - chunk.length} specs left to cover`);
  }
}

function readRecord(records, spec) {
  const file = join(records, encodeURIComponent(spec));
  return existsSync(file) ? [...new Set(readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number))] : [];
}
