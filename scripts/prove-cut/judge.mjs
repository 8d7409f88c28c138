/** Tries each change against the specs that reach it, until one fails. */
import { applyReversed } from './reverts.mjs';
import { instrumentClone } from './instrument.mjs';
import { resetClone } from './git.mjs';
import { runSpecs } from './run-specs.mjs';

/** Specs of the first batch for each worker. Each further batch has twice as many as the one before. */
const FIRST_BATCH = 2;
/** A batch may take so many times what its specs take without a mutant, and a minute. */
const PATIENCE = 4;

/** Judges all changes that the quick tier has not caught. Returns whether it came to the end. */
export async function judge(state, tier, { workers, isOver }) {
  const { data, directory, changes } = state;
  const outcomes = data.outcomes[tier];
  const isLeft = ({ id }) => !outcomes[id] && (tier === 'quick' || isMissed(data.outcomes.quick[id]));
  const clones = { mutants: state.cloneNamed('instrumented'), reverts: state.cloneNamed('plain') };
  instrumentClone(clones.mutants, data);
  for (const change of changes.filter(isLeft)) {
    if (isOver()) return false;
    const specs = specsFor(data.cover[tier], change);
    const clone = prepare(clones, change, data);
    outcomes[change.id] = await tryBatches(
      specs,
      (batch) =>
        runSpecs({
          clone,
          specs: batch.map(({ spec }) => spec),
          tier,
          variables: { LOCK_MUTANT: String(change.id), PROVE_CUT_ENDS_EARLY: '1' },
          workers,
          limitMs: 60_000 + PATIENCE * batch.reduce((sum, { ms }) => sum + ms, 0),
          directory,
        }),
      workers,
    );
    state.save();
    const { outcome, spec = '', test = '' } = outcomes[change.id];
    console.log(`${tier} ${change.id}: ${outcome} ${spec} ${test}`);
  }
  return true;
}

export function isMissed(outcome) {
  return outcome?.outcome !== 'caught';
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

async function tryBatches(specs, run, workers) {
  if (specs.length === 0) return { outcome: 'not covered' };
  for (let at = 0, size = FIRST_BATCH * workers; at < specs.length; at += size, size *= 2) {
    const batch = specs.slice(at, at + size);
    const { isKilled, results } = await run(batch);
    const failure = results.find(({ failed }) => failed.length > 0);
    if (failure) return { outcome: 'caught', spec: failure.spec, test: failure.failed[0] };
    const unended = batch.find(({ spec }) => !results.some((result) => result.spec === spec));
    if (unended)
      return { outcome: 'caught', spec: unended.spec, test: isKilled ? 'did not end in time' : 'jest ended' };
  }
  return { outcome: 'survived', specs: specs.length };
}
