import { readSignedLock, type SignedLock } from './signed-lock.js';

/**
 * Name of one acquisition of a key. A holder sends a sequencer to other servers with its requests, as in Chubby:
 * https://research.google/pubs/pub27897/. A sequencer grants no right.
 */
export type Sequencer = SignedLock;

/**
 * Result of a check. `valid`: that acquisition still has the key. `stale`: that acquisition has lost or released the
 * key for good. `unknown`: the text is no sequencer, or one of another backend or key.
 */
export type SequencerState = 'valid' | 'stale' | 'unknown';

/**
 * Reads a text from an untrusted sender. Returns `undefined` for a text that `LockHandle.sequencer` did not write. Does
 * not check whether the owner still has the key, as `LockService.checkSequencer` does.
 */
export function readSequencer(text: unknown): Sequencer | undefined {
  return readSignedLock('lock1', text);
}
