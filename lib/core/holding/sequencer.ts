import { assertKey } from '../contract/key.js';
import { isSignedBy, type Signature, signText } from './process-identity.js';

/**
 * Name of one acquisition of a key, for servers that a holder asks to act for it, as Chubby's clients do:
 * https://research.google/pubs/pub27897/. It is data and grants no right.
 */
export interface Sequencer {
  /** Name of the backend. */
  readonly backend: string;
  /** Key with the namespace. */
  readonly key: string;
  readonly fencingToken: bigint;
  readonly owner: string;
}

/**
 * Result of a check. `valid`: the backend keeps the key for that very acquisition. `stale`: it does not, and never will
 * again. `unknown`: the text is no sequencer, or one of another backend or key.
 */
export type SequencerState = 'valid' | 'stale' | 'unknown';

/** Version, and room for the longest key with all of it escaped. */
const SEQUENCER_PATTERN = /^lock1\.(?<fields>[\w-]{1,34000})$/u;
const NAME_PATTERN = /^[\w:.@/ ~-]{1,100}$/u;
const TOKEN_PATTERN = /^[1-9]\d{0,18}$/u;
const PUBLIC_KEY_PATTERN = /^[\w-]{43}$/u;
const SIGNATURE_PATTERN = /^[\w-]{86}$/u;

/** Returns the text of a sequencer, signed by this process, which the owner names. A changed token is found out. */
export function formatSequencer(sequencer: Sequencer): string {
  return textOf(sequencer, signText(contentOf(sequencer)));
}

/**
 * Reads a text that may come from anybody. Returns `undefined` for a text that `LockHandle.sequencer` did not write.
 * `LockService.checkSequencer` then asks whether its owner has the key.
 */
export function readSequencer(text: unknown): Sequencer | undefined {
  const fields = typeof text === 'string' ? SEQUENCER_PATTERN.exec(text)?.groups?.['fields'] : undefined;
  if (fields === undefined) return undefined;
  try {
    const { sequencer, signature } = partsOf(JSON.parse(Buffer.from(fields, 'base64url').toString()));
    // A sequencer has no second text, such as one with other spaces.
    const isCanonical = textOf(sequencer, signature) === text;
    return isCanonical && isSignedBy(sequencer.owner, contentOf(sequencer), signature) ? sequencer : undefined;
  } catch {
    return undefined;
  }
}

function textOf(sequencer: Sequencer, { publicKey, signature }: Signature): string {
  const fields = JSON.stringify([...fieldsOf(sequencer), publicKey, signature]);
  return `lock1.${Buffer.from(fields).toString('base64url')}`;
}

/** Returns the part of the text that is signed. */
function contentOf(sequencer: Sequencer): string {
  return JSON.stringify(fieldsOf(sequencer));
}

function fieldsOf({ backend, key, fencingToken, owner }: Sequencer): string[] {
  return [backend, key, String(fencingToken), owner];
}

/** Reads the fields of a sequencer. @throws when they are not those of one */
function partsOf(fields: unknown): { readonly sequencer: Sequencer; readonly signature: Signature } {
  if (!Array.isArray(fields)) throw new TypeError('no list');
  const [backend, key, token, owner, publicKey, signature]: unknown[] = fields;
  assertKey(key);
  return {
    sequencer: {
      backend: assertMatch(NAME_PATTERN, backend),
      key,
      fencingToken: BigInt(assertMatch(TOKEN_PATTERN, token)),
      owner: assertMatch(NAME_PATTERN, owner),
    },
    signature: {
      publicKey: assertMatch(PUBLIC_KEY_PATTERN, publicKey),
      signature: assertMatch(SIGNATURE_PATTERN, signature),
    },
  };
}

function assertMatch(pattern: RegExp, field: unknown): string {
  if (typeof field === 'string' && pattern.test(field)) return field;
  throw new TypeError('not of the form');
}
