/** Tries each change against the specs that reach it, until one fails. */
import { applyReversed } from './reverts.mjs';
import { instrumentClone } from './instrument.mjs';
import { resetClone } from './git.mjs';
import { remarkOn } from './remarks.mjs';
import { runSpecs } from './run-specs.mjs';

/** Specs of the first batch for each worker. Each further batch has twice as many as the one before. */
const FIRST_BATCH = 2;
/** A batch may take so many times what its specs take without a mutant, and a minute. */
const PATIENCE = 4;
const ENDLESS = 'does not end in time';

/** Judges all changes, or for the full tier those that the quick one has not caught. Returns whether it came to the end. */
export async function judge(state, tier, { workers, isOver }) {
  const { data, directory, changes } = state;
  const outcomes = data.outcomes[tier];
  const isLeft = ({ id }) => !outcomes[id] && (tier === 'quick' || isMissed(data.outcomes.quick[id]));
  const clones = { mutants: state.cloneNamed('instrumented'), reverts: state.cloneNamed('plain') };
  instrumentClone(clones.mutants, data);
  for (const change of changes.filter(isLeft)) {
    if (isOver()) return false;
    if (remarkOn(change)) {
      outcomes[change.id] = { outcome: 'changes nothing' };
      continue;
    }
    const clone = prepare(clones, change, data);
    const variables = { LOCK_MUTANT: String(change.id), PROVE_CUT_ENDS_EARLY: '1' };
    const run = (batch) => findFailure(batch, { clone, tier, variables, workers, directory });
    outcomes[change.id] = await tryAll(specsFor(data.cover[tier], change), run, FIRST_BATCH * workers);
    state.save();
    const { outcome, spec = '', test = '' } = outcomes[change.id];
    console.log(`${tier} ${change.id}: ${outcome} ${spec} ${test}`);
  }
  return true;
}

export function isCaught(outcome) {
  return outcome?.outcome === 'caught';
}

/** Whether a tier was tried, and did not catch. */
export function isMissed(outcome) {
  return outcome !== undefined && !isCaught(outcome);
}

/** Returns the passing specs that reach a change: first those that reach few others, and of these the fastest. */
function specsFor(cover, { id }) {
  return Object.entries(cover)
    .filter(([, { failed, ids }]) => failed.length === 0 && ids.includes(id))
    .map(([spec, { ms, ids }]) => ({ spec, ms, reach: ids.length }))
    .toSorted((a, b) => a.reach - b.reach || a.ms - b.ms);
}

/** Returns the clone to run in. Mutants are all in one, and a revert changes the other. */
function prepare(clones, { kind, patch }, { commit }) {
  if (kind !== 'revert') return clones.mutants;
  resetClone(clones.reverts, commit);
  applyReversed(clones.reverts, patch);
  return clones.reverts;
}

/**
 * Runs specs in batches. One that fails has to fail again: otherwise a busy machine would catch, and it is a doubt. One that
 * does not end is not waited for twice.
 */
async function tryAll(specs, run, firstSize) {
  if (specs.length === 0) return { outcome: 'not covered' };
  const doubts = [];
  let left = specs;
  for (let size = firstSize; left.length > 0; size *= 2) {
    const { failure, passed } = await run(left.slice(0, size));
    const isSure = failure?.test === ENDLESS || (failure && (await run([failure])).failure);
    if (isSure) return { outcome: 'caught', spec: failure.spec, test: failure.test, doubts };
    if (failure) doubts.push({ spec: failure.spec, test: failure.test });
    left = left.filter(({ spec }) => !passed.has(spec) && spec !== failure?.spec);
  }
  return { outcome: 'survived', specs: specs.length, doubts };
}

/** Runs a batch of specs until one fails, does not end, or ends jest. */
async function findFailure(batch, options) {
  const limitMs = 60_000 + PATIENCE * batch.reduce((sum, { ms }) => sum + ms, 0);
  const { isKilled, results } = await runSpecs({ ...options, limitMs, specs: batch.map(({ spec }) => spec) });
  const passed = new Set(results.filter(({ failed }) => failed.length === 0).map(({ spec }) => spec));
  const failed = results.find(({ spec }) => !passed.has(spec));
  const found = batch.find(({ spec }) => (failed ? spec === failed.spec : !passed.has(spec)));
  const test = failed?.failed[0] ?? (isKilled ? ENDLESS : 'jest ended');
  return { passed, failure: found && { ...found, test } };
}
