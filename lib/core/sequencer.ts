import { assertKey } from './key.js';

/**
 * Which acquisition of which key this is, for those whom a holder asks to act for it, as Chubby's clients do:
 * https://research.google/pubs/pub27897/. Data, and no right to anything: who can reach the backend needs none.
 */
export interface Sequencer {
  /** The backend's name. */
  readonly backend: string;
  /** With the namespace. */
  readonly key: string;
  readonly fencingToken: bigint;
  readonly owner: string;
}

/**
 * `valid`: the backend keeps the key for that very acquisition, so nobody else has had it since. `stale`: it does not, and never
 * will again. `unknown`: what was shown is no sequencer, or one of another backend or key.
 */
export type SequencerState = 'valid' | 'stale' | 'unknown';

/** The version, and room for the longest key there is, all of it escaped. */
const FORM = /^lock1\.(?<fields>[\w-]{1,34000})$/u;
const NAME = /^[\w:.@/ -]{1,100}$/u;
const TOKEN = /^[1-9]\d{0,18}$/u;

export function writeSequencer({ backend, key, fencingToken, owner }: Sequencer): string {
  const fields = JSON.stringify([backend, key, String(fencingToken), owner]);
  return `lock1.${Buffer.from(fields).toString('base64url')}`;
}

/** `undefined` for whatever `LockHandle.sequencer` did not write: it may come from anybody. */
export function readSequencer(text: unknown): Sequencer | undefined {
  const fields = typeof text === 'string' ? FORM.exec(text)?.groups?.['fields'] : undefined;
  if (fields === undefined) return undefined;
  try {
    const sequencer = sequencerOf(JSON.parse(Buffer.from(fields, 'base64url').toString()));
    // So that there is one text only for each.
    return writeSequencer(sequencer) === text ? sequencer : undefined;
  } catch {
    return undefined;
  }
}

/** @throws when it is none */
function sequencerOf(fields: unknown): Sequencer {
  if (!Array.isArray(fields)) throw new TypeError('no list');
  const [backend, key, token, owner]: unknown[] = fields;
  assertKey(key);
  return {
    backend: matching(NAME, backend),
    key,
    fencingToken: BigInt(matching(TOKEN, token)),
    owner: matching(NAME, owner),
  };
}

function matching(form: RegExp, field: unknown): string {
  if (typeof field === 'string' && form.test(field)) return field;
  throw new TypeError('not of the form');
}
