import { runOutsideLocks } from './call-tree.js';
import type { ServiceContext } from './service-context.js';
import { readSequencer, type SequencerState } from './sequencer.js';

/** Checks a sequencer, see `LockService.checkSequencer`. @param prefix of all keys of the service */
export async function checkSequencer(
  text: string,
  wanted: { readonly key?: string },
  prefix: string,
  { backend, clock, observers, stopped }: ServiceContext,
): Promise<SequencerState> {
  const sequencer = readSequencer(text);
  const { key } = wanted;
  const fits = typeof key === 'string' ? sequencer?.key === prefix + key : !('key' in wanted);
  if (sequencer?.backend !== backend.name || !fits || !backend.store.isHeldBy) return 'unknown';
  stopped.throwIfAborted();
  try {
    const isHeld = runOutsideLocks(async () => backend.store.isHeldBy?.(sequencer.key, sequencer.owner));
    return (await backend.noteOutcome(sequencer.key, clock, isHeld)) === true ? 'valid' : 'stale';
  } catch (error) {
    throw observers.createFailure(sequencer.key, 'check a sequencer of', error);
  }
}
