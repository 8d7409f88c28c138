import { runOutsideLocks } from './call-tree.js';
import type { ServiceContext } from './service-context.js';
import { readSequencer, type SequencerState } from './sequencer.js';

/** @param expectedFields with `key`: the one key, without the namespace, for which a sequencer is valid */
export async function checkSequencer(
  text: string,
  expectedFields: { readonly key?: string },
  keyPrefix: string,
  { backend, clock, observers, stopSignal }: ServiceContext,
): Promise<SequencerState> {
  const sequencer = readSequencer(text);
  const { key } = expectedFields;
  // A `key` that is no text, such as `undefined` from a missing parameter, must not pass as "any key".
  const isExpectedKey = typeof key === 'string' ? sequencer?.key === keyPrefix + key : !('key' in expectedFields);
  if (sequencer?.backend !== backend.name || !isExpectedKey || !backend.store.isHeldBy) return 'unknown';
  stopSignal.throwIfAborted();
  try {
    const isHeldPromise = runOutsideLocks(async () => backend.store.isHeldBy?.(sequencer.key, sequencer.owner));
    return (await backend.awaitAndCountOutcome(sequencer.key, clock, isHeldPromise)) === true ? 'valid' : 'stale';
  } catch (error) {
    throw observers.toLockError(sequencer.key, 'check a sequencer of', error);
  }
}
